/* Threads that decode the segments of all queues, and hand their lines over in the order of each
 * queue. What comes out does not depend on how many threads there are. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/job.h"
#include "decode/label_list.h"
#include "decode/patch_lessons.h"
#include "decode/timed_walk.h"

enum { TEAM_THREADS_MAX = 64 };

/** One queue: cut into segments in order, decoded out of order, merged in order. */
struct lane {
	struct timed_walk walk;
	struct flow_code where; /* without code */
	struct printer printer; /* of all its jobs, where lines depend on those before */
	struct job *first, *last;
	unsigned jobs;
	bool walking, walked; /* a thread cuts the next segment; there is none after the last job */
	size_t run;           /* of the first job's chunk, the next for the merger */
};

struct team {
	const struct print_config *print;
	struct lane *lanes;
	size_t lane_count;
	struct code code; /* of the calling thread, where it does the work */
	pthread_t threads[TEAM_THREADS_MAX];
	unsigned thread_count; /* 0: the calling thread does the work when it needs lines */
	unsigned lane_jobs;    /* that a lane may have at a time */
	size_t chunk_bytes;    /* of text that a job hands over at a time */
	pthread_mutex_t lock;
	pthread_cond_t work, lines; /* there may be some */
	bool stop, gaps_only, in_order, out_of_memory;
	/* of segments that are done */
	uint64_t gaps[GAP_KINDS], insns, corrections, translated;
	struct label_list labels;
	struct patch_lessons lessons;
};

/**
 * Begin with the queues that the options want. Threads start at once.
 *
 * @threads  1: none beside the caller's
 *
 * Everything named must outlive the team. Returns 0 or -PTVM_NO_MEMORY; team_free() in any case.
 */
int team_init(struct team *team, const struct aux_queue *queues, size_t count,
	      const struct print_config *print, unsigned threads);

/**
 * Wait until the lane's next lines are there.
 *
 * Returns the chunk, of which the lane's `run` is the next; NULL when the queue has ended (or
 * memory: see `out_of_memory`). It is the caller's until team_taken().
 */
const struct chunk *team_lines(struct team *team, struct lane *lane);

/** All runs of the chunk have been used. */
void team_taken(struct team *team, struct lane *lane);

/** Stop the threads and release everything; accepts zeroes. */
void team_free(struct team *team);
