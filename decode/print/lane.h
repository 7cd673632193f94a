/* One queue on its way to text: cut into segments in order, decoded out of order, written in order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/rank_heap.h"
#include "decode/print/job.h"
#include "decode/pt/timed_walk.h"

struct lane {
	struct timed_walk walk;
	struct flow_code where; /* without code */
	struct printer printer; /* of all its jobs, where lines depend on those before */
	struct job *first, *last;
	unsigned jobs;
	struct job *waiting, *last_waiting; /* those of them that wait for a thread, in order */
	unsigned waiting_jobs;
	uint64_t held;        /* position in the queue: pages from here on may be in memory */
	uint64_t from_ns;     /* of the last job */
	bool walking;         /* a thread is cutting the next segment */
	bool walked;          /* there are no more segments */
	struct ranked ranked; /* by the time of what a thread can do for it */
	/* Its chunks, jobs or end are news to the timeline. */
	bool is_changed;
	struct lane *next_changed;
};

/** A job that was begun with, of the segment behind all others, belongs to the lane from now on. It
 * waits for a thread. */
void lane_add(struct lane *lane, struct job *job);

/** Release the first job, which has ended. */
void lane_drop_first(struct lane *lane);

/** The first job that waits is for a thread to run. There must be one. */
struct job *lane_take(struct lane *lane);

/** A job that a thread ran waits for the next one. */
void lane_wait(struct lane *lane, struct job *job);
