#include "decode/job.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"

enum { TEXT_ITEMS = 1024 }; /* of a batch, where each may be many lines */

static void begin(struct job *job, const struct print_config *print, const struct flow_code *where,
		  bool gaps_only)
{
	job->begun = true;
	pt_flow_init(&job->flow, &job->segment, print->pt, where, gaps_only);
	job->flow.quick = print->itrace.quick > 2 ? 2 : (uint8_t)print->itrace.quick;
	job->batch.room = gaps_only ? FLOW_BATCH : FLOW_MARGIN + TEXT_ITEMS;
	if (job->printer)
		return;
	job->printer = &job->own;
	printer_init(&job->own, print, job->segment.queue, where);
}

int job_run(struct job *job, const struct print_config *print, const struct flow_code *where,
	    bool gaps_only)
{
	int r = 0;

	if (!job->begun)
		begin(job, print, where, gaps_only);
	/* blocks are of the thread that looked them up */
	job->flow.where = *where;
	job->flow.block = NULL;
	job->printer->where = *where;
	job->printer->space = NULL;
	while (!r && job->printer->out.size < job->chunk_bytes) {
		r = pt_flow_run(&job->flow, &job->batch);
		printer_print(job->printer, &job->batch);
		if (!code_is_full(where->code))
			continue;
		job->flow.block = NULL;
		job->printer->space = NULL;
		code_trim(where->code);
	}
	return r;
}

void job_publish(struct job *job)
{
	struct chunk empty = job->chunk;

	empty.text.size = 0;
	empty.runs.count = 0;
	job->chunk = (struct chunk){ job->printer->out, job->printer->runs };
	job->printer->out = empty.text;
	job->printer->runs = empty.runs;
	job->full = true;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	if (job->printer == &job->own)
		printer_free(&job->own);
	text_free(&job->chunk.text);
	vec_free(&job->chunk.runs);
	free(job);
}
