#include "decode/job.h"

#include <stdlib.h>
#include <string.h>

void job_init(struct job *job, struct printer *printer)
{
	job->next = NULL;
	job->printer = printer;
	job->chunks.first = NULL;
	job->outcome = NULL;
	job->begun = false;
	job->state = JOB_WAITING;
}

static void begin(struct job *job, const struct worker *worker, const struct flow_code *where)
{
	const struct print_config *print = worker->print;

	job->begun = true;
	pt_flow_init(&job->flow, &job->segment, print->pt, where, worker->gaps_only);
	job->flow.quick = print->itrace.quick > 2 ? 2 : (uint8_t)print->itrace.quick;
	if (job->printer)
		return;
	job->printer = &job->own;
	printer_init(&job->own, print, job->segment.queue, where);
}

/* Blocks are of the thread that looked them up. */
static void forget_blocks(struct job *job)
{
	job->flow.block = NULL;
	job->printer->space = NULL;
}

static int fill(struct job *job, struct worker *worker)
{
	int r = 0;

	while (!r && job->printer->out.size < worker->chunk_bytes) {
		r = pt_flow_run(&job->flow, &worker->batch);
		printer_print(job->printer, &worker->batch);
		if (!code_is_full(&worker->code))
			continue;
		forget_blocks(job);
		code_trim(&worker->code);
	}
	return r;
}

int job_run(struct job *job, struct worker *worker, const struct flow_code *where,
	    struct chunk *chunk)
{
	struct flow_code own = *where;
	int r;

	own.code = &worker->code;
	if (!job->begun)
		begin(job, worker, &own);
	forget_blocks(job);
	job->flow.where = job->printer->where = own;
	job->printer->out = chunk->text;
	job->printer->runs = chunk->runs;
	r = fill(job, worker);
	chunk->text = job->printer->out;
	chunk->runs = job->printer->runs;
	job->printer->out = (struct text){ 0 };
	job->printer->runs = (struct print_runs){ 0 };
	return r;
}

struct outcome *job_outcome(struct job *job)
{
	const struct flow_patches *patches = &job->flow.patches;
	const struct pt_clock *before = &job->segment.clock, *after = &job->flow.clock;
	struct outcome *ret = malloc(sizeof(*ret) + patches->count * sizeof(patches->items[0]));

	if (!ret)
		return NULL;
	*ret = (struct outcome){ .insns = job->flow.insns,
				 .corrections = after->corrections - before->corrections,
				 .translated = after->translated - before->translated,
				 .left_out = job->printer->has_left_out,
				 .patch_count = patches->count };
	memcpy(ret->gaps, job->printer->gaps, sizeof(ret->gaps));
	memset(job->printer->gaps, 0, sizeof(ret->gaps)); /* it may be that of other jobs, too */
	memcpy(ret->patches, patches->items, patches->count * sizeof(patches->items[0]));
	return ret;
}

uint64_t job_time(const struct job *job)
{
	return job->begun ? job->flow.clock.now : job->segment.clock.now;
}

void job_free(struct job *job)
{
	if (job->printer == &job->own)
		printer_free(&job->own);
	chunk_list_free(&job->chunks);
	free(job->outcome);
	free(job);
}
