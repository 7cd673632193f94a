/* Where there is much trace, some of it must do: parts all over it first, then those between the
 * last visit to the earlier code and the first to other code. How much is looked at follows from
 * the trace alone, so that the answer does not depend on how fast the machine is. */
#include "decode/code_visits.h"

#include <stdlib.h>
#include <string.h>

#include "decode/aux_pages.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"
#include "decode/code_votes.h"
#include "decode/flow_packet.h"
#include "decode/machines.h"
#include "decode/odd_branch.h"
#include "decode/trace_sample.h"

enum {
	WHOLE_BYTES = 8 << 20,    /* of trace in all queues: up to that all of it is looked at, */
	WORK_MAX = 128 << 20,     /* and otherwise so much is done, in units of about 3 ns: */
	WORK_WALK = 1,            /* to read the packets of a byte of trace, */
	WORK_SCAN = 3,            /* to look for visits in it, */
	WORK_FOLLOW = 8,          /* or to follow it through code */
	FIRST_PARTS = 64,         /* looked at before it is known where to look */
	MORE_PARTS = 16,          /* then at a time, by all ranges, */
	TIRED = 4,                /* and twice as many, up to so often, where that brings nothing */
	SEGMENT_BYTES = 64 << 10, /* of trace, at least */
	TOLD_MAX = 1 << 16,       /* addresses looked at in one segment */
	VISITS_MAX = 1 << 14,     /* kept of each range, */
	VISITS_LEAST = 1 << 6,    /* or if there are many ranges of each so many, at least; */
	VISITS_ALL = 1 << 20,     /* of all, about */
	HELD_BYTES = 1 << 20,     /* of trace, before its pages are given back */
	ADDRESSES = 2,            /* told behind that of a visit, up to which packets must agree */
};

enum version { EARLIER, LATER, VERSIONS };

/* Code of which one asks when it was replaced. */
struct range {
	struct machine *machine;
	const struct later_range *later; /* where it is, with all that have it first; NULL: */
	const char *module;              /* it is this one's, and nobody has what came then */
	struct code_votes votes;         /* by what visits agree with */
	struct sample_times times; /* between which it was replaced, by what is known so far */
	unsigned tired;            /* how often they stayed the same */
	uint64_t settled;          /* votes seen when there was no more to look at; 0: there is */
};

/* An address of a range that was told in a segment. */
struct told {
	uint64_t position, time_ns;
	struct range *range;
	uint32_t addresses; /* told so far */
	bool is_odd;        /* in the middle of a function */
	bool is_astray;     /* in the middle of an instruction */
	bool is_lost;       /* packets and code disagree soon */
};

struct told_list {
	struct told *items; /* by position */
	size_t count, room;
	size_t open; /* from here on it is not known yet whether they agree */
};

struct pass {
	const struct patch_inference *sources;
	struct range_list {
		struct range **items;
		size_t count, room;
	} ranges;                   /* that were met, in order of compare_ranges(), */
	struct range_list met;      /* and in that in which they were */
	bool is_about_modules;      /* otherwise about later code */
	struct trace_sample sample; /* if only some of the trace is looked at */
	bool is_sample;
	uint64_t work;                   /* done so far */
	unsigned tired;                  /* how often one looked for more ranges */
	uint64_t first_ns;               /* when the present part begins; 0 unknown */
	struct told_list told[VERSIONS]; /* in the present segment */
	struct code codes[VERSIONS];
	struct pt_flow flow;
	struct flow_batch batch;
	bool is_cut; /* memory was out */
};

static void add_visit(struct pass *pass, const struct told *told, bool is_earlier)
{
	size_t share = VISITS_ALL / pass->ranges.count;
	size_t most = share > VISITS_MAX ? VISITS_MAX : share < VISITS_LEAST ? VISITS_LEAST : share;

	pass->is_cut |= !code_votes_add(&told->range->votes, told->time_ns, is_earlier, most);
}

static int compare_places(const void *a, const void *b)
{
	return (a > b) - (a < b);
}

int replaced_module_compare(const struct replaced_module *a, const struct replaced_module *b)
{
	return a->machine == b->machine ? strcmp(a->name, b->name)
					: compare_places(a->machine, b->machine);
}

static int compare_ranges(const struct range *a, const struct range *b)
{
	const struct replaced_module left = { a->machine, a->module, 0 };
	const struct replaced_module right = { b->machine, b->module, 0 };

	return a->later ? compare_places(a->later, b->later)
			: replaced_module_compare(&left, &right);
}

/* Where the range is or belongs. */
static size_t range_slot(const struct pass *pass, const struct range *key)
{
	return search_sorted(pass->ranges.count, i, compare_ranges(pass->ranges.items[i], key) < 0);
}

static struct range *find_range(const struct pass *pass, const struct range *key)
{
	size_t slot = range_slot(pass, key);

	return slot < pass->ranges.count && !compare_ranges(pass->ranges.items[slot], key)
		       ? pass->ranges.items[slot]
		       : NULL;
}

/* The range, made when it is new; NULL when memory is out. */
static struct range *get_range(struct pass *pass, const struct range *key)
{
	struct range *range = find_range(pass, key), **items;
	size_t slot = range_slot(pass, key);

	if (range)
		return range;
	range = malloc(sizeof(*range));
	if (!range ||
	    !vec_grow((void **)&pass->met.items, &pass->met.room, pass->met.count, sizeof(range)) ||
	    !vec_push(&pass->ranges, range)) {
		pass->is_cut = true;
		free(range);
		return NULL;
	}
	pass->met.items[pass->met.count++] = range;
	*range = *key;
	items = pass->ranges.items;
	memmove(items + slot + 1, items + slot, (pass->ranges.count - 1 - slot) * sizeof(*items));
	return items[slot] = range;
}

/* Of the ranges that were replaced with this one, the first stands for all. */
static const struct later_range *first_of(struct machine *machine, const struct later_range *range)
{
	size_t count;

	return range ? machine_replaced(machine, &count) + range->first : NULL;
}

/* The range that the flow is in, at an address that was just told; NULL for none. Where there is no
 * instruction the flow is lost at once. */
static struct range *present_range(struct pass *pass)
{
	struct pt_flow *flow = &pass->flow;
	struct code_space *space;
	struct range key = { 0 };

	if (flow->state == FLOW_DISABLED || flow->announced.at_fup || !(flow->ip >> 63))
		return NULL;
	space = flow_space(flow, flow->ip);
	if (!space || !space->machine)
		return NULL;
	key.machine = space->machine;
	if (pass->is_about_modules)
		key.module = machine_module(space->machine, flow->ip, flow_ns(flow));
	else
		key.later = first_of(space->machine, machine_replaced_at(space->machine, flow->ip));
	return key.module || key.later ? get_range(pass, &key) : NULL;
}

static void assume(const struct machines *machines, enum later_version version)
{
	struct machine *machine;

	for (size_t next = 0; (machine = machines_next(machines, &next));)
		machine_replaced_assume(machine, version);
}

static void begin(struct pass *pass, const struct inference_source *source,
		  const struct pt_segment *segment, enum version version)
{
	struct flow_code where = source->where;

	where.code = &pass->codes[version];
	where.inference = NULL;
	where.doubts = NULL;
	pt_flow_init(&pass->flow, segment, pass->sources->config, &where, true);
	pass->batch.room = FLOW_BATCH;
	pass->batch.count = 0;
}

/* Take a packet or some branches. Returns whether there is more to come. */
static bool step(struct pass *pass)
{
	struct flow_run run = { &pass->flow, &pass->batch };

	pass->batch.count = pass->batch.context_count = 0;
	return !flow_next(&run);
}

/* The time of the present step; a trace without times has but one. */
static uint64_t present_ns(const struct pass *pass)
{
	return pass->sources->config->tsc ? flow_ns(&pass->flow) : 0;
}

/* Whether an address of a range is told in the segment. */
static bool has_visits(struct pass *pass, const struct inference_source *source,
		       const struct pt_segment *segment)
{
	uint32_t addresses = 0;

	begin(pass, source, segment, EARLIER);
	pass->flow.quick = 1;
	while (step(pass)) {
		if (!pass->first_ns && pass->flow.clock.known)
			pass->first_ns = present_ns(pass);
		if (pass->flow.addresses != addresses && present_range(pass))
			return true;
		addresses = pass->flow.addresses;
	}
	return false;
}

/* Whether the last step came to where packets and code are at odds. */
static bool is_at_odds(const struct flow_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->items[i].kind == FLOW_GAP &&
		    (batch->items[i].count == GAP_MISMATCH || batch->items[i].count == GAP_LOOP ||
		     batch->items[i].count == GAP_NO_CODE))
			return true;
	return false;
}

static void lose(struct told_list *list)
{
	for (; list->open < list->count; list->open++)
		list->items[list->open].is_lost = true;
}

static void look_at_place(struct pass *pass, struct told *told)
{
	struct pt_flow *flow = &pass->flow;
	struct code_space *space = flow_space(flow, flow->ip);
	struct block *block =
		space ? block_get(flow->where.code, space, flow->ip, told->time_ns) : NULL;

	told->is_odd = odd_branch_needs_interrupt(told->range->machine, flow->ip, told->time_ns);
	told->is_astray = block && block->astray;
}

static void tell(struct pass *pass, struct told_list *list)
{
	const struct pt_flow *flow = &pass->flow;
	struct range *range = present_range(pass);
	struct told told = { .position = pt_cursor_position(&flow->cursor),
			     .time_ns = present_ns(pass),
			     .range = range,
			     .addresses = flow->addresses };

	while (list->open < list->count &&
	       flow->addresses - list->items[list->open].addresses >= ADDRESSES)
		list->open++;
	if (!range || (pass->is_sample && !flow->clock.known))
		return; /* in the midst of a queue a clock may have to wait for its time */
	if (pass->is_about_modules)
		look_at_place(pass, &told);
	pass->is_cut |= !vec_push(list, told);
}

/* Take note of what the last step came to. An address is told behind a gap, but where there is no
 * code at it. */
static void take_note(struct pass *pass, struct told_list *list, bool is_told)
{
	bool is_behind = pass->flow.state != FLOW_LOST;

	if (is_told && !is_behind)
		tell(pass, list);
	if (is_at_odds(&pass->batch))
		lose(list);
	if (is_told && is_behind)
		tell(pass, list);
}

/* Go through a segment with one version of the code, and see where packets agree with it. */
static void follow(struct pass *pass, const struct inference_source *source,
		   const struct pt_segment *segment, enum version version)
{
	struct told_list *list = &pass->told[version];
	uint32_t addresses = 0;

	list->count = list->open = 0;
	if (!pass->is_about_modules)
		assume(pass->sources->machines, version == LATER ? LATER_ALWAYS : LATER_NEVER);
	begin(pass, source, segment, version);
	while (step(pass) && !pass->is_cut && list->count < TOLD_MAX) {
		take_note(pass, list, pass->flow.addresses != addresses);
		addresses = pass->flow.addresses;
		if (code_is_full(&pass->codes[version])) {
			pass->flow.block = NULL;
			code_trim(&pass->codes[version]);
		}
	}
}

/* What came to its place is not known. It is other code if the address is no instruction's, and if
 * it is in the middle of a function and packets disagree with what follows there. */
static void judge_one(struct pass *pass, const struct told *told)
{
	if (told->is_astray || told->is_odd == told->is_lost)
		add_visit(pass, told, !told->is_astray && !told->is_lost);
}

/* What came to its place is known, and may agree where the other does not. */
static void judge_both(struct pass *pass, const struct told *earlier, const struct told *later)
{
	if (earlier->is_lost != later->is_lost)
		add_visit(pass, earlier, later->is_lost);
}

static void judge(struct pass *pass)
{
	const struct told_list *earlier = &pass->told[EARLIER], *later = &pass->told[LATER];

	for (size_t i = 0, k = 0; i < earlier->count; i++) {
		const struct told *told = &earlier->items[i];

		if (pass->is_about_modules)
			judge_one(pass, told);
		while (k < later->count && later->items[k].position < told->position)
			k++;
		if (k < later->count && later->items[k].position == told->position)
			judge_both(pass, told, &later->items[k]);
	}
}

static void run_segment(struct pass *pass, const struct inference_source *source,
			const struct pt_segment *segment)
{
	const uint64_t size = segment->to - segment->from;

	pass->work += size * WORK_SCAN;
	if (!has_visits(pass, source, segment))
		return;
	follow(pass, source, segment, EARLIER);
	if (!pass->is_about_modules)
		follow(pass, source, segment, LATER);
	pass->work += size * WORK_FOLLOW * (pass->is_about_modules ? 1 : 2);
	judge(pass);
}

static void run_queue(struct pass *pass, const struct inference_source *source)
{
	const struct patch_inference *sources = pass->sources;
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t held = 0;

	pt_walk_init(&walk, source->queue, sources->config, &sources->offsets, SEGMENT_BYTES);
	while (!pass->is_cut && !pt_walk_next(&walk, &segment)) {
		run_segment(pass, source, &segment);
		if (segment.to - held < HELD_BYTES)
			continue;
		aux_pages_release_trace(&sources->mapping, source->queue, held, segment.to);
		held = segment.to;
	}
}

/* Look at a part of the trace whose first PSB this is. */
static void run_part(struct pass *pass, const struct sample_part *part, uint64_t psb)
{
	const struct patch_inference *sources = pass->sources;
	const struct inference_source *source = &sources->sources.items[part->queue];
	struct sample_seen seen = { *part, 0, UINT64_MAX };
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t from, to;

	trace_sample_enter(sources, source->queue, psb, &walk);
	from = walk.segment.from;
	pass->first_ns = 0;
	while (!walk.ended && walk.segment.from < (part->number + 1) * SAMPLE_BYTES &&
	       !pt_walk_next(&walk, &segment))
		if (segment.from >= psb)
			run_segment(pass, source, &segment);
	to = walk.ended ? source->queue->size : walk.segment.from;
	pass->work += (to - from) * WORK_WALK;
	aux_pages_release_trace(&sources->mapping, source->queue, from, to);
	seen.from_ns = pass->first_ns;
	if (!walk.ended && sources->config->tsc && walk.clock.known)
		seen.to_ns = time_conv_ns(&sources->config->conv, walk.segment.clock.now);
	pass->is_cut |= !trace_sample_add(&pass->sample, &seen);
}

/* Look at a part, or if it has no PSB at the one with the next. */
static void look_at(struct pass *pass, const struct sample_part *part)
{
	const struct aux_queue *queue = pass->sources->sources.items[part->queue].queue;
	const uint64_t from = part->number * SAMPLE_BYTES, psb = pt_psb_after(queue, from);
	const struct sample_part next = { part->queue, psb / SAMPLE_BYTES };

	if (trace_sample_has(&pass->sample, part))
		return;
	pass->work += (psb - from) * WORK_WALK;
	if (next.number != part->number)
		pass->is_cut |= !trace_sample_add(&pass->sample,
						  &(struct sample_seen){ *part, 0, UINT64_MAX });
	if (psb < queue->size && !trace_sample_has(&pass->sample, &next))
		run_part(pass, &next, psb);
}

static bool may_go_on(const struct pass *pass)
{
	return pass->work < WORK_MAX && !pass->is_cut;
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
static bool is_settled(const struct range *range)
{
	return range->settled && range->settled == range->votes.seen;
}

static void look_where_replaced(struct pass *pass, struct range *range, size_t most)
{
	struct sample_times times;
	bool is_same;

	code_votes_between(&range->votes, &times.from_ns, &times.to_ns);
	is_same = times.from_ns == range->times.from_ns && times.to_ns == range->times.to_ns;
	range->tired = !is_same ? 0 : range->tired < TIRED ? range->tired + 1 : TIRED;
	range->times = times;
	range->settled = look(pass, &times, most << range->tired) ? 0 : range->votes.seen;
}

/* How many ranges of a machine were replaced, those counted once that were replaced together. */
static size_t count_replaced(struct machine *machine)
{
	size_t count, groups = 0;
	const struct later_range *ranges = machine_replaced(machine, &count);

	for (size_t i = 0; i < count; i++)
		groups += ranges[i].first == i;
	return groups;
}

/* Whether there may be ranges that were not met yet. Nobody knows of how many modules that is so.
 */
static bool may_meet_more(const struct pass *pass)
{
	const struct machines *machines = pass->sources->machines;
	struct machine *machine;
	size_t all = 0;

	if (pass->is_about_modules)
		return true;
	for (size_t next = 0; (machine = machines_next(machines, &next));)
		all += count_replaced(machine);
	return all > pass->ranges.count;
}

static const struct sample_times all_times = { 0, UINT64_MAX };

static void look_further(struct pass *pass)
{
	const bool is_searching = may_meet_more(pass);
	size_t asking = is_searching, each;

	for (size_t i = 0; i < pass->met.count; i++)
		asking += !is_settled(pass->met.items[i]);
	each = asking < MORE_PARTS ? MORE_PARTS / (asking + !asking) : 1;
	for (size_t i = 0; i < pass->met.count && may_go_on(pass); i++)
		if (!is_settled(pass->met.items[i]))
			look_where_replaced(pass, pass->met.items[i], each);
	if (!is_searching)
		return;
	(void)look(pass, &all_times, each << pass->tired);
	pass->tired += pass->tired < TIRED;
}

/* Look here and there, and then between what was seen on either side of a change. */
static void run_sample(struct pass *pass)
{
	size_t seen;

	pass->is_sample = true;
	pass->sample.sources = pass->sources;
	(void)look(pass, &all_times, FIRST_PARTS);
	do {
		seen = pass->sample.seen.count;
		look_further(pass);
	} while (pass->sample.seen.count > seen && may_go_on(pass));
}

static void run_all(struct pass *pass)
{
	const struct patch_inference *sources = pass->sources;
	uint64_t size = 0;

	for (size_t i = 0; i < sources->sources.count; i++)
		size += sources->sources.items[i].queue->size;
	for (size_t i = 0; i < sources->sources.count && size <= WHOLE_BYTES; i++)
		run_queue(pass, &sources->sources.items[i]);
	if (size > WHOLE_BYTES)
		run_sample(pass);
}

static struct pass *pass_new(const struct patch_inference *sources)
{
	struct pass *pass = calloc(1, sizeof(*pass));

	if (!pass)
		return NULL;
	pass->sources = sources;
	for (unsigned i = 0; i < VERSIONS; i++)
		code_init(&pass->codes[i], sources->machines);
	return pass;
}

static void pass_free(struct pass *pass)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		vec_free(&pass->told[i]);
		code_free(&pass->codes[i]);
	}
	for (size_t i = 0; i < pass->ranges.count; i++) {
		code_votes_free(&pass->ranges.items[i]->votes);
		free(pass->ranges.items[i]);
	}
	vec_free(&pass->ranges);
	vec_free(&pass->met);
	trace_sample_free(&pass->sample);
	free(pass);
}

static uint64_t since(const struct pass *pass, struct range *range)
{
	return pass->is_cut ? UINT64_MAX : code_votes_since(&range->votes);
}

/* Take what was found out to the ranges of a machine; those that were not met stay as they are. */
static void tell_machine(const struct pass *pass, struct machine *machine)
{
	size_t count;
	struct later_range *ranges = machine_replaced(machine, &count);

	for (size_t i = 0; i < count; i++) {
		const struct range key = { .machine = machine, .later = &ranges[ranges[i].first] };
		struct range *range = find_range(pass, &key);

		if (range && ranges[i].first == i)
			ranges[i].since = since(pass, range);
		else
			ranges[i].since = ranges[ranges[i].first].since;
	}
}

static void find_out(const struct patch_inference *sources)
{
	const struct machines *machines = sources->machines;
	struct pass *pass = pass_new(sources);
	struct machine *machine;

	if (!pass)
		return;
	run_all(pass);
	assume(machines, LATER_SINCE);
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

void code_visits_init(struct code_visits *visits, const struct patch_inference *sources)
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

void code_visits_modules(const struct patch_inference *sources, struct replaced_module_list *ret)
{
	struct pass *pass = pass_new(sources);

	if (!pass)
		return;
	pass->is_about_modules = true;
	run_all(pass);
	for (size_t i = 0; i < pass->ranges.count; i++) {
		struct range *range = pass->ranges.items[i];

		pass->is_cut |=
			!vec_push(ret, (struct replaced_module){ range->machine, range->module,
								 since(pass, range) });
	}
	pass_free(pass);
}
