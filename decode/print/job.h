/* One segment of a queue on its way to text: followed and printed chunk by chunk, by whichever
 * thread is free. */
#pragma once

#include <stdbool.h>

#include "decode/flow/pt_flow.h"
#include "decode/print/chunk.h"
#include "decode/print/printer.h"
#include "decode/pt/pt_segment.h"

/** What a job needs from its beginning to its end. */
struct job_run {
	struct printer own;
	struct printer *printer; /* `own`, unless lines depend on those of the segment before */
	struct pt_flow flow;     /* ends with what is hardly ever used, and takes no memory then */
};

struct job {
	struct job *next; /* the segment after this one in its queue */
	struct pt_segment segment;
	struct printer *printer; /* of the queue; NULL: the job has its own */
	uint64_t from_ns;    /* its lines are not before this; 0 where the queue has the printer */
	struct job_run *run; /* NULL: the job has not begun, or has ended */
	struct chunk_list chunks; /* done, and not yet on their way out */
	struct outcome *outcome;  /* of a job that has ended; NULL: it has not */
	struct job *next_waiting; /* lane.h: the one that waits after this one */
};

/** What a thread that runs jobs has for itself. */
struct worker {
	const struct print_config *print;
	bool gaps_only;     /* see pt_flow_init() */
	size_t chunk_bytes; /* of text, that a chunk should have */
	struct code code;
	struct flow_batch batch; /* its room is set */
};

/**
 * Begin with a job whose segment is set.
 *
 * @print    what to print
 * @printer  of the queue, or NULL for its own
 * @from_ns  from which on the queue's lines are, by the job before
 */
void job_init(struct job *job, const struct print_config *print, struct printer *printer,
	      uint64_t from_ns);

/**
 * Decode on until a chunk, empty at first, is full or the segment has ended.
 *
 * @where  of the job's queue; its code is the worker's
 *
 * Returns 0 with more to come, -PTVM_END, or -PTVM_NO_MEMORY.
 */
int job_run(struct job *job, struct worker *worker, const struct flow_code *where,
	    struct chunk *chunk);

/** What came of a job that has ended: free() it. The job keeps its chunks only. NULL when memory is
 * out. */
struct outcome *job_outcome(struct job *job);

/** The approximate time of its next lines, in TSC ticks. */
uint64_t job_time(const struct job *job);

/** Release what a job holds, and itself. */
void job_free(struct job *job);
