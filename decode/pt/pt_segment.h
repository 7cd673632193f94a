/* A queue cut at PSBs into segments that decode independently of each other.
 *
 * The walk reads packets only, no code. It keeps what a PSB+ does not restore - the clock, which in
 * a guest cannot be read off the TSC packet, and the last known VMCS and root mode - and leaves a
 * copy of it at the start of each segment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/pt_clock.h"
#include "decode/pt/pt_context.h"

struct pt_segment {
	const struct aux_queue *queue;
	uint64_t from, to; /* stream positions */
	/* `fresh`: nothing that can be followed comes before, because the queue begins here or data
	 * was lost (`lost`). Otherwise the former segment leads up to the PSB at `from`. */
	bool fresh, lost;
	bool to_psb;               /* at `to` is a PSB, not a loss or the end of the queue */
	struct pt_context context; /* as it was before `from` */
	struct pt_clock clock;
};

struct pt_walk {
	const struct pt_config *config;
	struct pt_cursor cursor;
	struct pt_segment segment; /* the one that is open */
	struct pt_context context;
	struct pt_clock clock;
	uint64_t min_size;
	uint64_t grid; /* bytes: also cut at the first PSB after each multiple of it; 0: not */
	uint64_t stop; /* read no further than this; 0: to the end */
	bool ended;
	/* The caller does not need to know when the CBR changes. If, in addition, the trace has no
	 * time, packets between two PSB+ that state the context are not read. */
	bool leaps;
};

/**
 * Begin to walk a queue.
 *
 * @offsets   TSC offsets known beforehand, for a guest TSC before the first of the host; or NULL
 * @min_size  bytes a segment should have at least; the result of decoding does not depend on it
 *
 * `queue` and `config` must outlive the walk and its segments.
 */
void pt_walk_init(struct pt_walk *walk, const struct aux_queue *queue,
		  const struct pt_config *config, const struct pt_offsets *offsets,
		  uint64_t min_size);

/** The next segment in order. Returns 0, or -PTVM_END after the last. */
int pt_walk_next(struct pt_walk *walk, struct pt_segment *ret);

/**
 * Go on at the beginning of a segment of the same queue, as if all before it had been walked. The
 * cuts are then where they would have been, if the segment begins at a point of the grid.
 */
void pt_walk_resume(struct pt_walk *walk, const struct pt_segment *segment);

/** Feed a clock a CYC packet at `position` of `queue`: its time is not after the buffer there was
 * read. */
void pt_segment_feed_cycles(struct pt_clock *clock, const struct aux_queue *queue,
			    uint64_t position, uint64_t cycles);

/**
 * Feed a clock the TSC of a PSB+, or one that stands alone.
 *
 * @position  of the packet in the stream of `queue`, for the upper bound of its time
 * @context   at the packet: host or guest
 * @group     `guest` and `vmcs` are filled in: whose time it shows
 */
void pt_segment_feed_clock(struct pt_clock *clock, const struct aux_queue *queue, uint64_t position,
			   const struct pt_context *context, struct pt_tsc_group *group);
