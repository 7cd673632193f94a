/* One segment of a queue on its way to text: followed and printed chunk by chunk, by whichever
 * thread is free. */
#pragma once

#include <stdbool.h>

#include "decode/chunk.h"
#include "decode/printer.h"
#include "decode/pt_flow.h"
#include "decode/pt_segment.h"

enum job_state {
	JOB_WAITING, /* for a thread */
	JOB_RUNNING, /* a thread has it */
	JOB_ENDED,
};

struct job {
	struct job *next; /* the segment after this one in its queue */
	struct pt_segment segment;
	struct pt_flow flow;
	struct printer own;
	struct printer *printer;  /* `own`, unless lines depend on those of the segment before */
	struct chunk_list chunks; /* done, and not yet on their way out */
	struct outcome *outcome;  /* of a job that has ended */
	bool begun;
	enum job_state state;
};

/** What a thread that runs jobs has for itself. */
struct worker {
	const struct print_config *print;
	bool gaps_only;     /* see pt_flow_init() */
	size_t chunk_bytes; /* of text, that a chunk should have */
	struct code code;
	struct flow_batch batch; /* its room is set */
};

/** Begin with a job whose segment is set; `printer`: of the queue, or NULL for its own. */
void job_init(struct job *job, struct printer *printer);

/**
 * Decode on until a chunk, empty at first, is full or the segment has ended.
 *
 * @where  of the job's queue; its code is the worker's
 *
 * Returns 0 with more to come, or -PTVM_END.
 */
int job_run(struct job *job, struct worker *worker, const struct flow_code *where,
	    struct chunk *chunk);

/** What came of a job that has ended: free() it. NULL when memory is out. */
struct outcome *job_outcome(struct job *job);

/** The approximate time of its next lines, in TSC ticks. */
uint64_t job_time(const struct job *job);

/** Release what a job holds, and itself. */
void job_free(struct job *job);
