#include "decode/flow_patch.h"

#include <string.h>

enum {
	SEGMENT_WORK = 1 << 19, /* instructions, and for each byte of a segment: */
	BYTE_WORK = 4,
	HOPELESS_WORK = 1 << 16, /* instead, where hardly anything can be found */
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

void flow_patch_settle(struct pt_flow *flow)
{
	struct flow_patches *patches = &flow->patches;
	struct code *code = flow->where.code;

	if (!patches->count || patches->code == code)
		return;
	patches->code = code;
	for (uint32_t i = 0; i < patches->count; i++) {
		const struct flow_patch *patch = &patches->items[i];

		(void)code_add_site(code, patch->machine, patch->insn.site);
		if (patch->also.site)
			(void)code_add_site(code, patch->machine, patch->also.site);
	}
	flow->block = NULL;
}

static bool is_same_insn(const struct patched_insn *a, const struct patched_insn *b)
{
	return a->site == b->site && a->to == b->to && a->size == b->size &&
	       !memcmp(a->bytes, b->bytes, a->size);
}

bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b)
{
	return a->machine == b->machine && is_same_insn(&a->insn, &b->insn) &&
	       is_same_insn(&a->also, &b->also);
}

/* What a patch makes of the instruction at `site`; NULL: it is not about that. */
static const struct patched_insn *insn_at(const struct flow_patch *patch, uint64_t site)
{
	if (patch->insn.site == site)
		return &patch->insn;
	return patch->also.site == site ? &patch->also : NULL;
}

bool flow_patch_is_about(const struct flow_patch *patch, const struct machine *machine,
			 uint64_t site)
{
	return patch->machine == machine && insn_at(patch, site);
}

const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow)
{
	for (uint32_t i = patches->count; i-- > 0;) {
		const struct flow_patch *patch = &patches->items[i];

		if (flow_patch_is_about(patch, machine, site) && patch->from <= flow->addresses &&
		    flow->clock.now >= patch->since && flow->clock.now < patch->until)
			return insn_at(patch, site)->to ? patch : NULL;
	}
	return NULL;
}

bool flow_patch_is_possible(const struct block *block)
{
	return block->ip >> 63 && block->space->machine && block->space->bits == 64;
}

/* A loop may pass a patch many times: what it does with conditional branches there proves nothing
 * until a packet tells where that led. */
static void note_visit(struct pt_flow *flow, const struct flow_patch *patch)
{
	bool is_watched = patch >= flow->patches.items + flow->patch_watched;

	if (!is_watched || (flow->patch_visits && flow->patch_visited == flow->addresses))
		return;
	flow->patch_visits++;
	flow->patch_visited = flow->addresses;
}

struct block *flow_patch_block(struct pt_flow *flow, struct block *block)
{
	if (!flow_patch_is_possible(block))
		return block;
	for (unsigned i = 0; i < block->count; i++) {
		const struct patched_insn *insn;
		const struct flow_patch *patch;

		patch = flow_patch_find(&flow->patches, block->space->machine, block->insns[i].ip,
					flow);
		if (!patch)
			continue;
		note_visit(flow, patch);
		insn = insn_at(patch, block->insns[i].ip);
		return block_variant(flow->where.code, block, i, insn->bytes, insn->size);
	}
	return block;
}
