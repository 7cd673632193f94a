/* The segments of a queue that lie in the wanted times (--time). The walk jumps to the last known
 * point (trace_points.h) before each wanted time, ends behind the last one, and adds the points
 * that it passes. */
#pragma once

#include "decode/base/bytes.h"
#include "decode/pt/pt_segment.h"
#include "decode/pt/time_ranges.h"
#include "decode/pt/trace_points.h"

struct timed_walk {
	struct pt_walk walk;
	const struct time_ranges *times; /* NULL: all are wanted */
	struct trace_points *points;     /* NULL: none are known or kept */
	struct bytes mapping;            /* of the trace; empty: it is in memory */
	uint64_t held;                   /* position: pages from here on may be in memory */
};

/**
 * Begin to walk a queue; parameters are those of pt_walk_init(). Without more it hands out all
 * segments: set `times`, `points` and `mapping` (whose pages are given back where they are passed
 * over) before the first step. What they point to must outlive the walk.
 */
void timed_walk_init(struct timed_walk *walk, const struct aux_queue *queue,
		     const struct pt_config *config, const struct pt_offsets *offsets,
		     uint64_t min_size);

/** The next segment that may have something of a wanted time. Returns 0 or -PTVM_END. */
int timed_walk_next(struct timed_walk *walk, struct pt_segment *ret);
