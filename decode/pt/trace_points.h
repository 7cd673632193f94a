/* Places in a queue where a walk (pt_segment.h) can begin as if it had walked all before, with the
 * state that it has there. They take some fifty kilobytes for a gigabyte of trace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/pt_segment.h"

enum {
	TRACE_POINT_BYTES = 4 << 20, /* of trace from one point to the next */
	TRACE_POINT_WORDS = 28,      /* of a point, and two more for each TSC offset */
};

struct trace_point {
	uint64_t position; /* of a PSB in the stream */
	uint64_t tsc;      /* host time before it; 0 unknown */
	size_t words;      /* where in `words` it begins */
};

/** The points of one queue, in order of position. Zero-initialise before use. */
struct trace_points {
	struct trace_point *items;
	size_t count, room;
	struct {
		uint64_t *items;
		size_t count, room;
	} words;
	bool bad; /* some did not fit the trace, and all were dropped */
};

/**
 * Keep the beginning of a segment as a point, unless one is known there or behind.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int trace_points_add(struct trace_points *points, const struct pt_segment *segment);

/**
 * Take the next point from words of a file, which need not be what trace_points_add() made.
 *
 * @words  at most `count` of them
 *
 * Returns how many words it was, -PTVM_BAD_INPUT (no walk makes such a point, or it does not come
 * after the last one) or -PTVM_NO_MEMORY.
 */
int trace_points_take(struct trace_points *points, const uint64_t *words, size_t count);

/** The segment that begins at a point; it has no end yet. `queue` and `config` must outlive it. */
struct pt_segment trace_points_segment(const struct trace_points *points, size_t index,
				       const struct aux_queue *queue,
				       const struct pt_config *config);

/** Whether a walk that came to this segment by itself knows what the point says. */
bool trace_points_equal(const struct trace_points *points, size_t index,
			const struct pt_segment *segment);

/** How many points come before this time, in ns of perf's clock. */
size_t trace_points_before(const struct trace_points *points, const struct time_conv *conv,
			   uint64_t time_ns);

/** They do not fit the trace: drop them all, and remember that. */
void trace_points_drop(struct trace_points *points);

/** Release everything; accepts zeroes. */
void trace_points_free(struct trace_points *points);
