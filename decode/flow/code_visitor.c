#include "decode/flow/code_visitor.h"

#include "decode/base/vec.h"
#include "decode/code/machines.h"
#include "decode/flow/flow_packet.h"
#include "decode/flow/odd_branch.h"

enum {
	TOLD_MAX = 1 << 16, /* addresses looked at in one segment */
	TOLD_AGREES = 2,    /* behind one that many more are told without disagreement: it agrees */
};

/* An address of visited code. */
struct told {
	uint64_t position, time_ns;
	struct visited_code *code;
	uint32_t addresses; /* told so far */
	bool is_odd;        /* in the middle of a function */
	bool is_astray;     /* in the middle of an instruction */
	bool is_lost;       /* packets and code disagree soon */
};

void code_visitor_init(struct code_visitor *visitor, const struct trace_sources *sources,
		       bool is_about_modules)
{
	visitor->sources = sources;
	visitor->is_about_modules = is_about_modules;
	for (unsigned i = 0; i < CODE_VERSIONS; i++)
		code_init(&visitor->codes[i], sources->machines);
}

/* Of the ranges that were replaced with this one, the first stands for all. */
static const struct later_range *first_of(struct machine *machine, const struct later_range *range)
{
	size_t count;

	return range ? machine_replaced(machine, &count) + range->first : NULL;
}

/* The code that the flow visits, at an address that was just told; NULL: nobody asks about it.
 * Where there is no instruction the flow is lost at once. */
static struct visited_code *present_code(struct code_visitor *visitor)
{
	struct pt_flow *flow = &visitor->flow;
	struct code_space *space;
	struct visited_code key = { 0 }, *code;

	if (flow->state == FLOW_DISABLED || flow->announced.at_fup || !(flow->ip >> 63))
		return NULL;
	space = flow_space(flow, flow->ip);
	if (!space || !space->machine)
		return NULL;
	key.machine = space->machine;
	if (visitor->is_about_modules)
		key.module = machine_module(space->machine, flow->ip, flow_ns(flow));
	else
		key.later = first_of(space->machine, machine_replaced_at(space->machine, flow->ip));
	if (!key.module && !key.later)
		return NULL;
	code = visited_codes_get(&visitor->visited, &key);
	visitor->is_out_of_memory |= !code;
	return code;
}

/* Have machines tell code of that copy where it was replaced. */
static void assume(const struct machines *machines, enum later_version version)
{
	struct machine *machine;

	for (size_t next = 0; (machine = machines_next(machines, &next));)
		machine_replaced_assume(machine, version);
}

static void begin(struct code_visitor *visitor, const struct trace_source *source,
		  const struct pt_segment *segment, enum code_version version)
{
	struct flow_code where = source->where;

	where.code = &visitor->codes[version];
	where.inference = NULL;
	where.doubts = NULL;
	pt_flow_init(&visitor->flow, segment, visitor->sources->config, &where, true);
	visitor->batch.room = FLOW_BATCH;
	visitor->batch.count = 0;
}

/* Take a packet or some branches. Returns whether there is more to come. */
static bool step(struct code_visitor *visitor)
{
	struct flow_run run = { &visitor->flow, &visitor->batch };

	visitor->batch.count = visitor->batch.context_count = 0;
	return !flow_next(&run);
}

/* The time of the present step; a trace without times has but one. */
static uint64_t present_ns(const struct code_visitor *visitor)
{
	return visitor->sources->config->tsc ? flow_ns(&visitor->flow) : 0;
}

/* Whether anything is visited in the segment. */
static bool has_visits(struct code_visitor *visitor, const struct trace_source *source,
		       const struct pt_segment *segment)
{
	uint32_t addresses = 0;

	begin(visitor, source, segment, CODE_EARLIER);
	visitor->flow.quick = 1;
	while (step(visitor)) {
		if (!visitor->first_ns && visitor->flow.clock.known)
			visitor->first_ns = present_ns(visitor);
		if (visitor->flow.addresses != addresses && present_code(visitor))
			return true;
		addresses = visitor->flow.addresses;
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

static void look_at_place(struct code_visitor *visitor, struct told *told)
{
	struct pt_flow *flow = &visitor->flow;
	struct code_space *space = flow_space(flow, flow->ip);
	struct block *block =
		space ? block_get(flow->where.code, space, flow->ip, told->time_ns) : NULL;

	told->is_odd = odd_branch_needs_interrupt(told->code->machine, flow->ip, told->time_ns);
	told->is_astray = block && block->astray;
}

static void tell(struct code_visitor *visitor, struct told_list *list)
{
	const struct pt_flow *flow = &visitor->flow;
	struct visited_code *code = present_code(visitor);
	struct told told = { .position = pt_cursor_position(&flow->cursor),
			     .time_ns = present_ns(visitor),
			     .code = code,
			     .addresses = flow->addresses };

	while (list->open < list->count &&
	       flow->addresses - list->items[list->open].addresses >= TOLD_AGREES)
		list->open++;
	if (!code || (visitor->needs_clock && !flow->clock.known))
		return; /* in the midst of a queue a clock may have to wait for its time */
	if (visitor->is_about_modules)
		look_at_place(visitor, &told);
	visitor->is_out_of_memory |= !vec_push(list, told);
}

/* Take note of what the last step came to. An address is told behind a gap, but where there is no
 * code at it. */
static void take_note(struct code_visitor *visitor, struct told_list *list, bool is_told)
{
	bool is_behind = visitor->flow.state != FLOW_LOST;

	if (is_told && !is_behind)
		tell(visitor, list);
	if (is_at_odds(&visitor->batch))
		lose(list);
	if (is_told && is_behind)
		tell(visitor, list);
}

/* Go through a segment with one version of the code, and see where packets agree with it. */
static void follow(struct code_visitor *visitor, const struct trace_source *source,
		   const struct pt_segment *segment, enum code_version version)
{
	struct told_list *list = &visitor->told[version];
	uint32_t addresses = 0;

	list->count = list->open = 0;
	if (!visitor->is_about_modules)
		assume(visitor->sources->machines,
		       version == CODE_LATER ? LATER_ALWAYS : LATER_NEVER);
	begin(visitor, source, segment, version);
	while (step(visitor) && !visitor->is_out_of_memory && list->count < TOLD_MAX) {
		take_note(visitor, list, visitor->flow.addresses != addresses);
		addresses = visitor->flow.addresses;
		if (code_is_full(&visitor->codes[version])) {
			visitor->flow.block = NULL;
			code_trim(&visitor->codes[version]);
		}
	}
}

static void vote(struct code_visitor *visitor, const struct told *told, bool is_earlier)
{
	visitor->is_out_of_memory |=
		!visited_codes_vote(&visitor->visited, told->code, told->time_ns, is_earlier);
}

/* What came to its place is not known. It is other code if the address is no instruction's, and if
 * it is in the middle of a function and packets disagree with what follows there. */
static void judge_one(struct code_visitor *visitor, const struct told *told)
{
	if (told->is_astray || told->is_odd == told->is_lost)
		vote(visitor, told, !told->is_astray && !told->is_lost);
}

/* What came to its place is known, and may agree where the other does not. */
static void judge_both(struct code_visitor *visitor, const struct told *earlier,
		       const struct told *later)
{
	if (earlier->is_lost != later->is_lost)
		vote(visitor, earlier, later->is_lost);
}

static void judge(struct code_visitor *visitor)
{
	const struct told_list *earlier = &visitor->told[CODE_EARLIER],
			       *later = &visitor->told[CODE_LATER];

	for (size_t i = 0, k = 0; i < earlier->count; i++) {
		const struct told *told = &earlier->items[i];

		if (visitor->is_about_modules)
			judge_one(visitor, told);
		while (k < later->count && later->items[k].position < told->position)
			k++;
		if (k < later->count && later->items[k].position == told->position)
			judge_both(visitor, told, &later->items[k]);
	}
}

void code_visitor_run(struct code_visitor *visitor, const struct trace_source *source,
		      const struct pt_segment *segment)
{
	const uint64_t size = segment->to - segment->from;

	visitor->work += size * WORK_SCAN;
	if (!has_visits(visitor, source, segment))
		return;
	follow(visitor, source, segment, CODE_EARLIER);
	if (!visitor->is_about_modules)
		follow(visitor, source, segment, CODE_LATER);
	visitor->work += size * WORK_FOLLOW * (visitor->is_about_modules ? 1 : 2);
	judge(visitor);
}

void code_visitor_free(struct code_visitor *visitor)
{
	if (!visitor->is_about_modules)
		assume(visitor->sources->machines, LATER_SINCE);
	for (unsigned i = 0; i < CODE_VERSIONS; i++) {
		vec_free(&visitor->told[i]);
		code_free(&visitor->codes[i]);
	}
	visited_codes_free(&visitor->visited);
}
