/* Where there is much trace, some of it must do: parts all over it first, then those between the
 * last visit to the earlier code and the first to other code. How much is looked at follows from
 * the trace alone, so that the answer does not depend on how fast the machine is. */
#include "decode/flow/code_visits.h"

#include <stdlib.h>

#include "decode/base/vec.h"
#include "decode/code/machines.h"
#include "decode/flow/code_visitor.h"
#include "decode/flow/replaced_module.h"
#include "decode/flow/trace_sample.h"
#include "decode/pt/aux_pages.h"

enum {
	WHOLE_BYTES = 8 << 20,    /* of trace in all queues: up to that all of it is looked at, */
	WORK_MAX = 128 << 20,     /* and otherwise so much is done (enum visitor_work) */
	FIRST_PARTS = 64,         /* looked at before it is known where to look */
	MORE_PARTS = 16,          /* then at a time, for all code that was met, */
	TIRED = 4,                /* and twice as many, up to so often, where that brings nothing */
	SEGMENT_BYTES = 64 << 10, /* of trace, at least */
};

struct pass {
	const struct trace_sources *sources;
	struct code_visitor visitor;
	struct trace_sample sample; /* if only some of the trace is looked at */
	unsigned tired;             /* how often one looked for code that was not met yet */
};

static void run_queue(struct pass *pass, const struct trace_source *source)
{
	const struct trace_sources *sources = pass->sources;
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t held = 0;

	pt_walk_init(&walk, source->queue, sources->config, &sources->offsets, SEGMENT_BYTES);
	while (!pass->visitor.is_out_of_memory && !pt_walk_next(&walk, &segment)) {
		code_visitor_run(&pass->visitor, source, &segment);
		aux_pages_pass(&sources->mapping, source->queue, &held, segment.to);
	}
}

/* Look at a part of the trace whose first PSB this is. */
static void run_part(struct pass *pass, const struct sample_part *part, uint64_t psb)
{
	const struct trace_sources *sources = pass->sources;
	const struct trace_source *source = &sources->items[part->queue];
	struct sample_seen seen = { *part, 0, UINT64_MAX };
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t from, to;

	trace_sample_enter(sources, source->queue, psb, &walk);
	from = walk.segment.from;
	pass->visitor.first_ns = 0;
	while (!walk.ended && walk.segment.from < (part->number + 1) * SAMPLE_BYTES &&
	       !pt_walk_next(&walk, &segment))
		if (segment.from >= psb)
			code_visitor_run(&pass->visitor, source, &segment);
	to = walk.ended ? source->queue->size : walk.segment.from;
	pass->visitor.work += (to - from) * WORK_WALK;
	aux_pages_release_trace(&sources->mapping, source->queue, from, to);
	seen.from_ns = pass->visitor.first_ns;
	if (!walk.ended && sources->config->tsc && walk.clock.known)
		seen.to_ns = time_conv_ns(&sources->config->conv, walk.segment.clock.now);
	pass->visitor.is_out_of_memory |= !trace_sample_add(&pass->sample, &seen);
}

/* Look at a part, or if it has no PSB at the one with the next. */
static void look_at(struct pass *pass, const struct sample_part *part)
{
	const struct aux_queue *queue = pass->sources->items[part->queue].queue;
	const uint64_t from = part->number * SAMPLE_BYTES, psb = pt_psb_after(queue, from);
	const struct sample_part next = { part->queue, psb / SAMPLE_BYTES };

	if (trace_sample_has(&pass->sample, part))
		return;
	pass->visitor.work += (psb - from) * WORK_WALK;
	if (next.number != part->number)
		pass->visitor.is_out_of_memory |= !trace_sample_add(
			&pass->sample, &(struct sample_seen){ *part, 0, UINT64_MAX });
	if (psb < queue->size && !trace_sample_has(&pass->sample, &next))
		run_part(pass, &next, psb);
}

static bool may_go_on(const struct pass *pass)
{
	return pass->visitor.work < WORK_MAX && !pass->visitor.is_out_of_memory;
}

/* Look at so many parts that may have something of these times. Returns whether there were any. */
static bool look(struct pass *pass, const struct sample_times *times, size_t most)
{
	struct sample_part *parts = calloc(most, sizeof(*parts));
	size_t count = parts ? trace_sample_choose(&pass->sample, times, most, parts) : 0;

	for (size_t i = 0; i < count && may_go_on(pass); i++)
		look_at(pass, &parts[i]);
	free(parts);
	return count;
}

/* Whether no visit was seen since there was nothing left to look at. */
static bool is_settled(const struct visited_code *code)
{
	return code->settled && code->settled == code->votes.seen;
}

static void look_where_replaced(struct pass *pass, struct visited_code *code, size_t most)
{
	struct sample_times times;
	bool is_same;

	code_votes_between(&code->votes, &times.from_ns, &times.to_ns);
	is_same = times.from_ns == code->times.from_ns && times.to_ns == code->times.to_ns;
	code->unchanged = !is_same ? 0 : code->unchanged < TIRED ? code->unchanged + 1 : TIRED;
	code->times = times;
	code->settled = look(pass, &times, most << code->unchanged) ? 0 : code->votes.seen;
}

/* How many ranges of a machine were replaced; those that were replaced together count once. */
static size_t count_replaced(struct machine *machine)
{
	size_t count, groups = 0;
	const struct later_range *ranges = machine_replaced(machine, &count);

	for (size_t i = 0; i < count; i++)
		groups += ranges[i].first == i;
	return groups;
}

/* Whether there may be code that was not met yet. How many modules were replaced is not known. */
static bool may_meet_more(const struct pass *pass)
{
	const struct machines *machines = pass->sources->machines;
	struct machine *machine;
	size_t all = 0;

	if (pass->visitor.is_about_modules)
		return true;
	for (size_t next = 0; (machine = machines_next(machines, &next));)
		all += count_replaced(machine);
	return all > pass->visitor.visited.count;
}

static const struct sample_times all_times = { 0, UINT64_MAX };

static void look_further(struct pass *pass)
{
	const bool is_searching = may_meet_more(pass);
	size_t asking = is_searching, each;

	for (size_t i = 0; i < pass->visitor.visited.count; i++)
		asking += !is_settled(pass->visitor.visited.items[i]);
	each = asking < MORE_PARTS ? MORE_PARTS / (asking + !asking) : 1;
	for (size_t i = 0; i < pass->visitor.visited.count && may_go_on(pass); i++)
		if (!is_settled(pass->visitor.visited.items[i]))
			look_where_replaced(pass, pass->visitor.visited.items[i], each);
	if (!is_searching)
		return;
	(void)look(pass, &all_times, each << pass->tired);
	pass->tired += pass->tired < TIRED;
}

/* Look here and there, and then between what was seen on either side of a change. */
static void run_sample(struct pass *pass)
{
	size_t seen;

	pass->visitor.needs_clock = true;
	(void)look(pass, &all_times, FIRST_PARTS);
	do {
		seen = pass->sample.seen.count;
		look_further(pass);
	} while (pass->sample.seen.count > seen && may_go_on(pass));
}

static void run_all(struct pass *pass)
{
	const struct trace_sources *sources = pass->sources;
	bool is_small = trace_sources_size(sources) <= WHOLE_BYTES;

	for (size_t i = 0; i < sources->count && is_small; i++)
		run_queue(pass, &sources->items[i]);
	if (!is_small)
		run_sample(pass);
}

static struct pass *pass_new(const struct trace_sources *sources, bool is_about_modules)
{
	struct pass *pass = calloc(1, sizeof(*pass));

	if (!pass)
		return NULL;
	pass->sources = sources;
	pass->sample.sources = sources;
	code_visitor_init(&pass->visitor, sources, is_about_modules);
	return pass;
}

static void pass_free(struct pass *pass)
{
	code_visitor_free(&pass->visitor);
	trace_sample_free(&pass->sample);
	free(pass);
}

static uint64_t since(const struct pass *pass, struct visited_code *code)
{
	return pass->visitor.is_out_of_memory ? UINT64_MAX : code_votes_since(&code->votes);
}

/* Take what was found out to the ranges of a machine; those that were not met stay as they are. */
static void tell_machine(const struct pass *pass, struct machine *machine)
{
	size_t count;
	struct later_range *ranges = machine_replaced(machine, &count);

	for (size_t i = 0; i < count; i++) {
		const struct visited_code key = { .machine = machine,
						  .later = &ranges[ranges[i].first] };
		struct visited_code *code = visited_codes_find(&pass->visitor.visited, &key);

		if (code && ranges[i].first == i)
			ranges[i].since = since(pass, code);
		else
			ranges[i].since = ranges[ranges[i].first].since;
	}
}

static void find_out(const struct trace_sources *sources)
{
	const struct machines *machines = sources->machines;
	struct pass *pass = pass_new(sources, false);
	struct machine *machine;

	if (!pass)
		return;
	run_all(pass);
	for (size_t next = 0; (machine = machines_next(machines, &next));)
		tell_machine(pass, machine);
	pass_free(pass);
}

/* The thread that finds out asks for code, too. */
static void settle(void *context)
{
	struct code_visits *visits = context;

	if (atomic_load_explicit(&visits->is_done, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&visits->lock);
	if (!visits->is_begun) {
		visits->is_begun = true;
		find_out(visits->sources);
		atomic_store_explicit(&visits->is_done, true, memory_order_release);
	}
	(void)pthread_mutex_unlock(&visits->lock);
}

static void have_settled(const struct machines *machines, void (*act)(void *context), void *context)
{
	struct machine *machine;

	for (size_t next = 0; (machine = machines_next(machines, &next));)
		machine_replaced_settle(machine, act, context);
}

void code_visits_init(struct code_visits *visits, const struct trace_sources *sources)
{
	pthread_mutexattr_t attr;

	*visits = (struct code_visits){ .sources = sources };
	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	(void)pthread_mutex_init(&visits->lock, &attr);
	(void)pthread_mutexattr_destroy(&attr);
	have_settled(sources->machines, settle, visits);
}

void code_visits_free(struct code_visits *visits)
{
	if (!visits->sources)
		return;
	have_settled(visits->sources->machines, NULL, NULL);
	(void)pthread_mutex_destroy(&visits->lock);
}

void code_visits_modules(const struct trace_sources *sources, struct replaced_module_list *ret)
{
	struct pass *pass = pass_new(sources, true);

	if (!pass)
		return;
	run_all(pass);
	for (size_t i = 0; i < pass->visitor.visited.count; i++) {
		struct visited_code *code = pass->visitor.visited.sorted[i];

		pass->visitor.is_out_of_memory |=
			!vec_push(ret, (struct replaced_module){ code->machine, code->module,
								 since(pass, code) });
	}
	pass_free(pass);
}
