#include "decode/code_visits.h"

#include <stdlib.h>
#include <string.h>

#include "decode/aux_pages.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"
#include "decode/flow_packet.h"
#include "decode/odd_branch.h"

enum {
	SEGMENT_BYTES = 64 << 10, /* of trace, at least */
	TOLD_MAX = 1 << 16,       /* addresses looked at in one segment */
	VISITS_MAX = 1 << 14,     /* kept of each range, */
	VISITS_LEAST = 1 << 6,    /* or if there are many ranges of each so many, at least; */
	VISITS_ALL = 1 << 20,     /* of all, about */
	HELD_BYTES = 1 << 20,     /* of trace, before its pages are given back */
	ADDRESSES = 2,            /* told behind that of a visit, up to which packets must agree */
	LEAST = 2,                /* visits that must speak for other code */
	AGAINST = 16,             /* visits that do, for each one that does not */
};

enum version { EARLIER, LATER, VERSIONS };

/* What a visit agrees with. */
struct visit {
	uint64_t time_ns;
	bool is_earlier; /* otherwise with what came to its place */
};

/* Code of which one asks when it was replaced. */
struct range {
	struct machine *machine;
	const struct later_range *later; /* where it is, with all that have it first; NULL: */
	const char *module;              /* it is this one's, and nobody has what came then */
	struct {
		struct visit *items;
		size_t count, room;
	} visits;
	uint64_t seen, each; /* visits; every how many is kept */
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
	struct {
		struct range **items;
		size_t count, room;
	} ranges;                        /* that were met, in order of compare_ranges() */
	bool is_about_modules;           /* otherwise about later code */
	struct told_list told[VERSIONS]; /* in the present segment */
	struct code codes[VERSIONS];
	struct pt_flow flow;
	struct flow_batch batch;
	bool is_cut; /* memory was out */
};

static size_t visits_room(const struct pass *pass)
{
	size_t share = VISITS_ALL / pass->ranges.count;

	return share > VISITS_MAX ? VISITS_MAX : share < VISITS_LEAST ? VISITS_LEAST : share;
}

/* To keep memory bounded, every other visit is dropped when there are too many. */
static void add_visit(struct pass *pass, const struct told *told, bool is_earlier)
{
	const struct visit visit = { told->time_ns, is_earlier };
	struct range *range = told->range;
	size_t count = range->visits.count;

	if (range->seen++ % range->each)
		return;
	pass->is_cut |= !vec_push(&range->visits, visit);
	if (pass->is_cut || ++count < visits_room(pass))
		return;
	for (size_t i = 0; i < count / 2; i++)
		range->visits.items[i] = range->visits.items[2 * i];
	range->visits.count = count / 2;
	range->each *= 2;
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
	if (!range || !vec_push(&pass->ranges, range)) {
		pass->is_cut = true;
		free(range);
		return NULL;
	}
	*range = *key;
	range->each = 1;
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

	if (flow->state == FLOW_DISABLED || flow->at_fup || !(flow->ip >> 63))
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

/* The host, then guests; NULL where there is none. */
static struct machine *machine_number(const struct machines *machines, size_t number)
{
	return number ? machines->guests[number - 1] : machines->host;
}

static void assume(const struct machines *machines, enum later_version version)
{
	for (size_t i = 0; i <= machines->guest_count; i++)
		if (machine_number(machines, i))
			machine_replaced_assume(machine_number(machines, i), version);
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

/* Whether an address of a range is told in the segment. */
static bool has_visits(struct pass *pass, const struct inference_source *source,
		       const struct pt_segment *segment)
{
	uint32_t addresses = 0;

	begin(pass, source, segment, EARLIER);
	pass->flow.quick = 1;
	while (step(pass)) {
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
			     .time_ns = flow_ns(flow),
			     .range = range,
			     .addresses = flow->addresses };

	while (list->open < list->count &&
	       flow->addresses - list->items[list->open].addresses >= ADDRESSES)
		list->open++;
	if (!range)
		return;
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
	if (!has_visits(pass, source, segment))
		return;
	follow(pass, source, segment, EARLIER);
	if (!pass->is_about_modules)
		follow(pass, source, segment, LATER);
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

static void run_all(struct pass *pass)
{
	for (size_t i = 0; i < pass->sources->sources.count; i++)
		run_queue(pass, &pass->sources->sources.items[i]);
}

static int compare(const void *a, const void *b)
{
	const struct visit *left = a, *right = b;

	return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

/* What the visits up to a time and from then on say. */
struct sums {
	size_t earlier, other;
};

static void count_visit(struct sums *sums, const struct visit *visit)
{
	sums->earlier += visit->is_earlier;
	sums->other += !visit->is_earlier;
}

/* Between the visits up to number `split` that speak for the earlier code and the others. */
static uint64_t time_between(const struct range *range, size_t split)
{
	const struct visit *visits = range->visits.items;
	size_t last = split, first = split;

	while (last && !visits[last - 1].is_earlier)
		last--;
	while (visits[first].is_earlier)
		first++;
	return last ? visits[last - 1].time_ns / 2 + visits[first].time_ns / 2 + 1 : 0;
}

/* Whether the visits before number `i` are not of the same time as the others. */
static bool is_border(const struct range *range, size_t i)
{
	return i == range->visits.count ||
	       range->visits.items[i - 1].time_ns != range->visits.items[i].time_ns;
}

/* When the code was replaced: the time that most visits agree with; UINT64_MAX: it was not. */
static uint64_t decide(const struct pass *pass, struct range *range)
{
	struct sums all = { 0 }, before = { 0 }, best = { 0 };
	size_t split = 0;

	if (pass->is_cut || !range->visits.count)
		return UINT64_MAX;
	qsort(range->visits.items, range->visits.count, sizeof(*range->visits.items), compare);
	for (size_t i = 0; i < range->visits.count; i++)
		count_visit(&all, &range->visits.items[i]);
	for (size_t i = 0; i < range->visits.count; i++) {
		count_visit(&before, &range->visits.items[i]);
		if (before.earlier + best.other <= best.earlier + before.other ||
		    !is_border(range, i + 1))
			continue;
		best = before;
		split = i + 1;
	}
	if (all.other - best.other < LEAST ||
	    all.earlier - best.earlier > (all.other - best.other) / AGAINST ||
	    best.other > best.earlier / AGAINST)
		return UINT64_MAX;
	return time_between(range, split);
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
		vec_free(&pass->ranges.items[i]->visits);
		free(pass->ranges.items[i]);
	}
	vec_free(&pass->ranges);
	free(pass);
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
			ranges[i].since = decide(pass, range);
		else
			ranges[i].since = ranges[ranges[i].first].since;
	}
}

static void find_out(const struct patch_inference *sources)
{
	const struct machines *machines = sources->machines;
	struct pass *pass = pass_new(sources);

	if (!pass)
		return;
	run_all(pass);
	assume(machines, LATER_SINCE);
	for (size_t i = 0; i <= machines->guest_count; i++)
		if (machine_number(machines, i))
			tell_machine(pass, machine_number(machines, i));
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
	for (size_t i = 0; i <= machines->guest_count; i++)
		if (machine_number(machines, i))
			machine_replaced_settle(machine_number(machines, i), act, context);
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
								 decide(pass, range) });
	}
	pass_free(pass);
}
