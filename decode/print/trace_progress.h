/* How much of the trace is decoded, for a user who waits at a terminal for the first line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct trace_progress {
	uint64_t total, done; /* bytes of trace */
	int64_t next_ms;      /* of monotonic_ms(): not shown before */
	bool is_shown;
};

/** Begin, with no trace so far: its bytes are added to `total`. */
void trace_progress_init(struct trace_progress *progress, int64_t now_ms);

/** So many bytes more are done. Returns whether it is time to show that. */
bool trace_progress_add(struct trace_progress *progress, uint64_t bytes, int64_t now_ms);

/** Show it on standard error, if that is a terminal. */
void trace_progress_show(struct trace_progress *progress);

/** Clear what is shown, before anything else is written. */
void trace_progress_clear(struct trace_progress *progress);
