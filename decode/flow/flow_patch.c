#include "decode/flow/flow_patch.h"

#include "decode/code/label_targets.h"

enum {
	SEGMENT_WORK = 1 << 18, /* instructions, and for each byte of a segment: */
	BYTE_WORK = 32,
	HOPELESS_WORK = 1 << 16, /* instead, where hardly anything can be found */
	GROUP_SITES = 256,       /* that are told to the code at a time */
};

void flow_patch_init(struct pt_flow *flow)
{
	uint64_t bytes = flow->segment.to - flow->segment.from;

	flow->patches.work = SEGMENT_WORK + BYTE_WORK * bytes;
}

void flow_patch_expect_little(struct pt_flow *flow)
{
	if (flow->patches.work > HOPELESS_WORK)
		flow->patches.work = HOPELESS_WORK;
}

/* Sites on their way to the code, which looks through all its blocks each time. */
struct site_list {
	struct code *code;
	const struct machine *machine; /* of those that come next */
	struct code_site items[GROUP_SITES];
	size_t count;
};

static void tell_sites(struct site_list *list)
{
	code_add_sites(list->code, list->items, list->count);
	list->count = 0;
}

static bool add_site(void *context, uint64_t site)
{
	struct site_list *list = context;

	if (list->count == GROUP_SITES)
		tell_sites(list);
	list->items[list->count++] = (struct code_site){ list->machine, site };
	return true;
}

static void add_sites(struct site_list *list, const struct flow_patch *patch)
{
	const struct ftrace_change *ftrace = &patch->change.ftrace;

	if (ftrace->table)
		code_add_traced(list->code, &(struct code_traced){ patch->machine, ftrace->table,
								   !ftrace->site });
	if (ftrace->table && !ftrace->site)
		return;
	list->machine = patch->machine;
	(void)patch_change_visit(&patch->change, add_site, list);
}

void flow_patch_settle(struct pt_flow *flow)
{
	struct flow_patches *patches = &flow->patches;
	struct site_list list;

	if (!patches->count || patches->code == flow->where.code)
		return;
	patches->code = list.code = flow->where.code;
	list.count = 0;
	for (uint32_t i = 0; i < patches->count; i++)
		add_sites(&list, &patches->items[i]);
	tell_sites(&list);
	flow->block = NULL;
}

bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b)
{
	return a->machine == b->machine && patch_change_is_same(&a->change, &b->change);
}

bool flow_patch_is_about(const struct flow_patch *patch, const struct machine *machine,
			 uint64_t site)
{
	return patch->machine == machine && patch_change_has(&patch->change, site);
}

static bool is_in_force(const struct flow_patch *patch, const struct pt_flow *flow)
{
	return patch->from <= flow->addresses && flow->clock.now >= patch->since &&
	       flow->clock.now < patch->until;
}

/* Among those from `first` on. */
static const struct flow_patch *find(const struct flow_patches *patches, uint32_t first,
				     const struct machine *machine, uint64_t site, bool in_groups,
				     const struct pt_flow *flow, struct patched_insn *ret)
{
	for (uint32_t i = patches->count; i-- > first;) {
		const struct flow_patch *patch = &patches->items[i];

		if (patch_change_is_group(&patch->change) && !in_groups)
			continue;
		if (is_in_force(patch, flow) && flow_patch_is_about(patch, machine, site))
			return patch_change_insn(&patch->change, site, ret) ? patch : NULL;
	}
	return NULL;
}

const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow, struct patched_insn *ret)
{
	return find(patches, 0, machine, site, true, flow, ret);
}

/* Whether a group may change an instruction: most others need not be looked for in its table. */
static bool may_be_in_group(const struct insn *insn)
{
	return insn->class == INSN_CALL || label_targets_is_label(insn);
}

bool flow_patch_is_possible(const struct block *block)
{
	return block->ip >> 63 && block->space->machine && block->space->bits == 64;
}

/* A loop may pass a patch many times: what it does with conditional branches there proves nothing
 * until a packet tells where that led. */
static void note_visit(struct pt_flow *flow, const struct flow_patch *patch)
{
	bool is_watched = patch >= flow->patches.items + flow->patch_visits.watched;

	if (!is_watched || (flow->patch_visits.count && flow->patch_visits.last == flow->addresses))
		return;
	flow->patch_visits.count++;
	flow->patch_visits.last = flow->addresses;
}

/* What code that stands for a trampoline jumps to, as a thunk of returns, is where it is: another
 * block. Whether the block goes on there behind an instruction. */
static bool leaves(const struct ftrace_table *stand_in, const struct block *block, unsigned index)
{
	return stand_in && index + 1u < block->count &&
	       !ftrace_table_has_caller(stand_in, block->insns[index + 1].ip);
}

static const struct ftrace_table *find_stand_in(const struct pt_flow *flow,
						const struct machine *machine, uint64_t ip)
{
	for (uint32_t i = flow->patches.count; i-- > 0;) {
		const struct flow_patch *patch = &flow->patches.items[i];
		const struct ftrace_change *ftrace = &patch->change.ftrace;

		if (ftrace->tracer.call && patch->machine == machine &&
		    ftrace_table_has_caller(ftrace->table, ip) && is_in_force(patch, flow))
			return ftrace->table;
	}
	return NULL;
}

struct block *flow_patch_block(struct pt_flow *flow, struct block *block)
{
	/* the code knows the sites of patches, but of those that a trial has beside them */
	const uint32_t first = block->patched ? 0 : flow->patch_visits.watched;
	const struct ftrace_table *stand_in;

	if (!flow_patch_is_possible(block))
		return block;
	stand_in = find_stand_in(flow, block->space->machine, block->ip);
	for (unsigned i = 0; i < block->count; i++) {
		const struct insn *copied = &block->insns[i];
		const struct flow_patch *patch;
		struct patched_insn insn;

		patch = find(&flow->patches, first, block->space->machine, copied->ip,
			     may_be_in_group(copied), flow, &insn);
		if (patch) {
			note_visit(flow, patch);
			return block_variant(flow->where.code, block, i, insn.bytes, insn.size);
		}
		if (leaves(stand_in, block, i))
			return block_variant(flow->where.code, block, i, copied->bytes,
					     copied->length);
	}
	return block;
}

bool flow_patch_stands_in(const struct pt_flow *flow, const struct machine *machine, uint64_t ip)
{
	return find_stand_in(flow, machine, ip);
}
