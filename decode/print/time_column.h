/* The column of time. With --reltime and --deltatime it depends on the lines before in the merged
 * output, so that printers leave a mark in its place, which the writer replaces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/text.h"

enum { TIME_COLUMN_MARK = 0x1f };

struct time_column {
	bool relative, delta, nanoseconds;
	/* ns of lines written; made up records have 0, which is no time */
	uint64_t first, previous;
	struct text text; /* of time_column_fill() */
};

/** Whether times wait for the merged output. */
static inline bool time_column_waits(const struct time_column *column)
{
	return column->relative || column->delta;
}

/** Append "sec.usec: " or "sec.nsec: ". */
void time_column_text(struct text *text, uint64_t time_ns, bool nanoseconds);

/**
 * Replace the first mark of each of these lines, which all have the same time; the result is in
 * `text` until the next call.
 */
void time_column_fill(struct time_column *column, const char *lines, size_t size, uint64_t time_ns);
