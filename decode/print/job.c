#include "decode/print/job.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"

/* The first lines of a segment have the time that was known there, or a later one. */
static uint64_t start_ns(const struct job *job, const struct print_config *print)
{
	uint64_t now = job->segment.clock.now;

	if (!now || print->timeless)
		return 0;
	return print->pt->conv.valid ? time_conv_ns(&print->pt->conv, now) : now;
}

void job_init(struct job *job, const struct print_config *print, struct printer *printer,
	      uint64_t from_ns)
{
	uint64_t own_ns = printer ? 0 : start_ns(job, print);

	job->next = NULL;
	job->printer = printer;
	job->from_ns = own_ns > from_ns ? own_ns : from_ns;
	job->run = NULL;
	job->chunks.first = NULL;
	job->outcome = NULL;
}

static bool begin(struct job *job, const struct worker *worker, const struct flow_code *where)
{
	const struct print_config *print = worker->print;
	struct job_run *run = malloc(sizeof(*run)); /* its parts are set before they are used */

	job->run = run;
	if (!run)
		return false;
	pt_flow_init(&run->flow, &job->segment, print->pt, where, worker->gaps_only);
	run->flow.quick = print->itrace.quick > 2 ? 2 : (uint8_t)print->itrace.quick;
	run->printer = job->printer ? job->printer : &run->own;
	if (!job->printer)
		printer_init(&run->own, print, job->segment.queue, where);
	return true;
}

static void end(struct job *job)
{
	if (job->run && job->run->printer == &job->run->own)
		printer_free(&job->run->own);
	free(job->run);
	job->run = NULL;
}

/* Blocks are of the thread that looked them up. */
static void forget_blocks(struct job_run *run)
{
	run->flow.block = NULL;
	run->printer->space = NULL;
}

static int fill(struct job_run *run, struct worker *worker)
{
	int r = 0;

	while (!r && run->printer->out.size < worker->chunk_bytes) {
		r = pt_flow_run(&run->flow, &worker->batch);
		printer_print(run->printer, &worker->batch);
		if (!code_is_full(&worker->code))
			continue;
		forget_blocks(run);
		code_trim(&worker->code);
	}
	return r;
}

/* The timeline relies on that no lines are before the time of their job. */
static void hold_back(const struct print_runs *runs, uint64_t from_ns)
{
	for (size_t i = 0; i < runs->count && runs->items[i].time_ns < from_ns; i++)
		runs->items[i].time_ns = from_ns;
}

int job_run(struct job *job, struct worker *worker, const struct flow_code *where,
	    struct chunk *chunk)
{
	struct flow_code own = *where;
	struct printer *printer;
	int r;

	own.code = &worker->code;
	if (!job->run && !begin(job, worker, &own))
		return -PTVM_NO_MEMORY;
	printer = job->run->printer;
	forget_blocks(job->run);
	job->run->flow.where = printer->where = own;
	printer->out = chunk->text;
	printer->runs = chunk->runs;
	r = fill(job->run, worker);
	hold_back(&printer->runs, job->from_ns);
	chunk->text = printer->out;
	chunk->runs = printer->runs;
	printer->out = (struct text){ 0 };
	printer->runs = (struct print_runs){ 0 };
	return r;
}

struct outcome *job_outcome(struct job *job)
{
	struct job_run *run = job->run;
	const struct flow_patches *patches = &run->flow.patches;
	const struct pt_clock *before = &job->segment.clock, *after = &run->flow.clock;
	struct outcome *ret = malloc(sizeof(*ret) + patches->count * sizeof(patches->items[0]));

	if (!ret)
		return NULL;
	*ret = (struct outcome){ .insns = run->flow.insns,
				 .events = run->flow.events,
				 .addresses = run->flow.addresses,
				 .psbs = run->flow.psbs,
				 .corrections = after->corrections - before->corrections,
				 .translated = after->translated - before->translated,
				 .left_out = run->printer->has_left_out,
				 .is_full = flow_patches_are_full(patches),
				 .patch_count = patches->count };
	memcpy(ret->gaps, run->printer->gaps, sizeof(ret->gaps));
	memset(run->printer->gaps, 0, sizeof(ret->gaps)); /* it may be that of other jobs, too */
	memcpy(ret->patches, patches->items, patches->count * sizeof(patches->items[0]));
	end(job);
	return ret;
}

uint64_t job_time(const struct job *job)
{
	return job->run ? job->run->flow.clock.now : job->segment.clock.now;
}

void job_free(struct job *job)
{
	end(job);
	chunk_list_free(&job->chunks);
	free(job->outcome);
	free(job);
}
