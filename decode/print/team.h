/* Threads that decode the segments of all queues, and write their lines in order of host time. What
 * comes out does not depend on how many threads there are. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/flow/code_pool.h"
#include "decode/flow/code_visits.h"
#include "decode/flow/patch_inference.h"
#include "decode/flow/patch_list.h"
#include "decode/flow/replaced_module.h"
#include "decode/print/lane.h"
#include "decode/print/timeline.h"
#include "decode/print/trace_progress.h"

enum { TEAM_THREADS_MAX = 64 };

struct sleeper;

struct team {
	const struct print_config *print;
	struct lane *lanes;
	size_t lane_count, lanes_left; /* that have not ended */
	struct rank_heap ranks;        /* of all lanes */
	struct lane *changed;          /* a list in no order */
	unsigned threads;
	cpu_set_t cpus;     /* where they may run */
	unsigned lane_jobs; /* that a lane may have at a time */
	pthread_mutex_t lock;
	struct sleeper *sleepers; /* threads that have no work, the one that had some last first */
	bool is_waking;           /* a thread that was woken for work has not looked for it yet */
	bool stop, gaps_only, in_order, out_of_memory;
	bool left_out;
	/* A thread is writing lines; it also writes what others have ready meanwhile. */
	bool writing;
	struct timeline timeline; /* of the thread that is writing */
	struct ptvm_error *error; /* why lines could not be written */
	int written;              /* what timeline_write() returned last */
	struct chunk_list chunks; /* that are free */
	size_t chunk_bytes;       /* of text that a chunk should have */
	size_t trace_bytes;       /* of a lane that are given back at a time */
	uint64_t released;        /* bytes of trace since tables gave pages back */
	size_t text_bytes;        /* of all chunks in use */
	size_t text_most;    /* more than so many only while nothing could be written otherwise */
	uint32_t batch_room; /* items of a job's batches */
	/* of segments that are done */
	uint64_t gaps[GAP_KINDS], insns, events, addresses, psbs, corrections, translated;
	struct trace_progress progress;
	struct patch_list patches;
	struct patch_inference inference;
	struct module_doubts doubts;
	struct code_visits visits;
	struct code_pool pool; /* of more than one thread */
	unsigned pool_begun;   /* as it was last */
};

/** What came of it. */
struct team_result {
	uint64_t gaps[GAP_KINDS];
	uint64_t insns, events, addresses, psbs;
	uint64_t bytes;                  /* of trace */
	bool written, left_out;          /* lines; or the options left some out */
	bool full;                       /* as many lines as were allowed */
	uint64_t corrections;            /* times held back from running backwards */
	uint64_t translated;             /* TSCs of guests that are not the host's */
	const char *note;                /* about lines of the recording's samples; NULL none */
	struct patch_list_sites patched; /* instructions of kernels */
};

/**
 * Begin with the queues that the options want.
 *
 * Everything named must outlive the team. Returns 0 or -PTVM_NO_MEMORY; team_free() in any case.
 */
int team_init(struct team *team, const struct aux_queue *queues, size_t count,
	      const struct print_config *print, const struct timeline_output *output);

/** Decode and write. Returns as timeline_write() does. */
int team_run(struct team *team, struct ptvm_error *error);

/** Release everything; accepts zeroes. */
void team_free(struct team *team);

/**
 * Decode the queues and write their lines.
 *
 * @queues  of the recording, in order of index; those of unwanted CPUs are passed over
 * @print   what to print
 *
 * Memory is bounded by the number of queues and the size of code, not by the trace.
 * Returns 0; -PTVM_SYSTEM when output cannot be written (EPIPE: nobody reads on); -PTVM_NO_MEMORY.
 */
int team_print(const struct aux_queue *queues, size_t count, const struct print_config *print,
	       const struct timeline_output *output, struct team_result *ret,
	       struct ptvm_error *error);
