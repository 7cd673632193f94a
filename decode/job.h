/* One segment of a queue on its way to text: followed and printed chunk by chunk, by whichever
 * thread is free. */
#pragma once

#include <stdbool.h>

#include "decode/printer.h"
#include "decode/pt_flow.h"
#include "decode/pt_segment.h"

/** Lines that are done, and their times. */
struct chunk {
	struct text text;
	struct print_runs runs;
};

enum job_state {
	JOB_WAITING, /* for a thread: it has not begun, or its chunk was taken */
	JOB_RUNNING,
	JOB_ENDED,
};

struct job {
	struct job *next; /* the segment after this one in its queue */
	struct pt_segment segment;
	struct pt_flow flow;
	struct flow_batch batch;
	struct printer own; /* unless lines depend on those of the segment before */
	struct printer *printer;
	struct chunk chunk; /* for the merger, while `full` */
	size_t chunk_bytes; /* of text that a chunk should have */
	bool begun, full;
	enum job_state state;
};

/**
 * Decode on with a thread's code until there is a chunk to give, or the segment has ended.
 *
 * @where      of the job's queue; its code is that of the calling thread
 * @gaps_only  see pt_flow_init()
 *
 * Returns 0 with more to come, or -PTVM_END.
 */
int job_run(struct job *job, const struct print_config *print, const struct flow_code *where,
	    bool gaps_only);

/** Hand the lines so far over to job->chunk, which must have been taken. */
void job_publish(struct job *job);

/** Release what a job holds, and itself; accepts NULL. */
void job_free(struct job *job);
