#include "decode/flow_patch.h"

#include <string.h>

#include "decode/label_targets.h"

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

static void add_group(struct code *code, const struct flow_patch *patch)
{
	const struct tracepoint_table *table = patch->group.table;
	struct code_site sites[GROUP_SITES];
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (!tracepoint_group_has(&patch->group, &table->items[i]))
			continue;
		if (count == GROUP_SITES) {
			(void)code_add_sites(code, sites, count);
			count = 0;
		}
		sites[count++] = (struct code_site){ patch->machine, table->items[i].ip };
	}
	(void)code_add_sites(code, sites, count);
}

static void add_key(struct code *code, const struct flow_patch *patch)
{
	const struct label_key *key = &patch->key;

	for (uint32_t at = key->first; at != LABEL_KEY_END; at = label_key_next(key, at)) {
		struct code_site site = { patch->machine, key->table->items[at].site };

		(void)code_add_sites(code, &site, 1);
	}
}

static void add_sites(struct code *code, const struct flow_patch *patch)
{
	struct code_site sites[] = { { patch->machine, patch->insn.site },
				     { patch->machine, patch->also.site } };

	if (patch->group.table)
		add_group(code, patch);
	else if (patch->key.table)
		add_key(code, patch);
	else
		(void)code_add_sites(code, sites, patch->also.site ? 2 : 1);
}

void flow_patch_settle(struct pt_flow *flow)
{
	struct flow_patches *patches = &flow->patches;
	struct code *code = flow->where.code;

	if (!patches->count || patches->code == code)
		return;
	patches->code = code;
	for (uint32_t i = 0; i < patches->count; i++)
		add_sites(code, &patches->items[i]);
	flow->block = NULL;
}

static bool is_same_insn(const struct patched_insn *a, const struct patched_insn *b)
{
	return a->site == b->site && a->to == b->to && a->size == b->size &&
	       !memcmp(a->bytes, b->bytes, a->size);
}

static bool is_same_group(const struct tracepoint_group *a, const struct tracepoint_group *b)
{
	return a->table == b->table && a->unit == b->unit && a->user == b->user &&
	       a->is_on == b->is_on;
}

bool flow_patch_is_group(const struct flow_patch *patch)
{
	return patch->group.table || patch->key.table;
}

bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b)
{
	return a->machine == b->machine && is_same_insn(&a->insn, &b->insn) &&
	       is_same_insn(&a->also, &b->also) && is_same_group(&a->group, &b->group) &&
	       label_key_is_same(&a->key, &b->key);
}

/* The site of a group; NULL: it has none there. */
static const struct tracepoint_site *site_of(const struct tracepoint_group *group, uint64_t ip)
{
	const struct tracepoint_site *site;

	site = group->table ? tracepoint_table_find(group->table, ip) : NULL;
	return site && tracepoint_group_has(group, site) ? site : NULL;
}

bool flow_patch_is_about(const struct flow_patch *patch, const struct machine *machine,
			 uint64_t site)
{
	if (patch->machine != machine)
		return false;
	if (patch->key.table)
		return label_key_has(&patch->key, site);
	return patch->insn.site == site || patch->also.site == site || site_of(&patch->group, site);
}

/* What a patch makes of the instruction at `site`, which it is about. False: it is as copied. */
static bool insn_at(const struct flow_patch *patch, uint64_t site, struct patched_insn *ret)
{
	if (patch->key.table)
		return label_key_insn(&patch->key, site, ret);
	if (patch->group.table)
		return tracepoint_group_insn(&patch->group, site_of(&patch->group, site), ret);
	*ret = patch->insn.site == site ? patch->insn : patch->also;
	return ret->to;
}

static const struct flow_patch *find(const struct flow_patches *patches,
				     const struct machine *machine, uint64_t site, bool in_groups,
				     const struct pt_flow *flow, struct patched_insn *ret)
{
	for (uint32_t i = patches->count; i-- > 0;) {
		const struct flow_patch *patch = &patches->items[i];

		if (flow_patch_is_group(patch) && !in_groups)
			continue;
		if (patch->from <= flow->addresses && flow->clock.now >= patch->since &&
		    flow->clock.now < patch->until && flow_patch_is_about(patch, machine, site))
			return insn_at(patch, site, ret) ? patch : NULL;
	}
	return NULL;
}

const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow, struct patched_insn *ret)
{
	return find(patches, machine, site, true, flow, ret);
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

struct block *flow_patch_block(struct pt_flow *flow, struct block *block)
{
	if (!flow_patch_is_possible(block))
		return block;
	for (unsigned i = 0; i < block->count; i++) {
		const struct insn *copied = &block->insns[i];
		const struct flow_patch *patch;
		struct patched_insn insn;

		patch = find(&flow->patches, block->space->machine, copied->ip,
			     may_be_in_group(copied), flow, &insn);
		if (!patch)
			continue;
		note_visit(flow, patch);
		return block_variant(flow->where.code, block, i, insn.bytes, insn.size);
	}
	return block;
}
