#include "decode/flow_patch.h"

#include <string.h>

enum {
	ENDBR_SIZE = 4,         /* a function may be entered behind its first instruction */
	SEGMENT_WORK = 1 << 18, /* instructions, and for each byte of a segment: */
	BYTE_WORK = 4,
};

void flow_patch_init(struct pt_flow *flow)
{
	uint64_t bytes = flow->segment.to - flow->segment.from;

	flow->patches.work = SEGMENT_WORK + BYTE_WORK * bytes;
}

void flow_patch_settle(struct pt_flow *flow)
{
	struct flow_patches *patches = &flow->patches;
	struct code *code = flow->where.code;

	if (!patches->count || patches->code == code)
		return;
	patches->code = code;
	for (uint32_t i = 0; i < patches->count; i++)
		(void)code_add_site(code, patches->items[i].machine, patches->items[i].site);
	flow->block = NULL;
}

void flow_mark_set(const struct flow_run *run, struct flow_mark *ret)
{
	const struct pt_flow *flow = run->flow;

	/* that is done all the time, and mostly there are no patches */
	memcpy(&ret->flow, flow,
	       offsetof(struct pt_flow, patches.items) +
		       flow->patches.count * sizeof(*flow->patches.items));
	ret->position = pt_cursor_position(&run->flow->cursor);
	ret->count = run->batch->count;
	ret->context_count = run->batch->context_count;
}

void flow_mark_return(struct flow_run *run, const struct flow_mark *mark,
		      const struct flow_patches *patches)
{
	struct pt_flow *flow = run->flow;
	uint64_t work = flow->patches.work;
	bool is_taught = flow->is_taught;

	*flow = mark->flow;
	flow->is_taught = is_taught;
	memcpy(flow->patches.items, patches->items, sizeof(patches->items));
	flow->patches.count = patches->count;
	flow->patches.work = work;
	flow->patches.code = NULL;
	flow_patch_settle(flow);
	run->batch->count = mark->count;
	run->batch->context_count = mark->context_count;
}

bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b)
{
	return a->site == b->site && a->to == b->to && a->machine == b->machine &&
	       a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow)
{
	for (uint32_t i = patches->count; i-- > 0;) {
		const struct flow_patch *patch = &patches->items[i];

		if (patch->site == site && patch->machine == machine &&
		    patch->from <= flow->addresses && flow->clock.now >= patch->since &&
		    flow->clock.now < patch->until)
			return patch->to ? patch : NULL;
	}
	return NULL;
}

bool flow_patch_is_possible(const struct block *block)
{
	return block->ip >> 63 && block->space->machine && block->space->bits == 64;
}

struct block *flow_patch_block(struct pt_flow *flow, struct block *block)
{
	if (!flow_patch_is_possible(block))
		return block;
	for (unsigned i = 0; i < block->count; i++) {
		const struct flow_patch *patch;

		patch = flow_patch_find(&flow->patches, block->space->machine, block->insns[i].ip,
					flow);
		flow->patch_visits += patch && patch >= flow->patches.items + flow->patch_watched;
		if (patch)
			return block_variant(flow->where.code, block, i, patch->bytes, patch->size);
	}
	return block;
}

static bool is_call_at(struct machine *machine, uint64_t ip, uint64_t time_ns, uint64_t next)
{
	struct code_view view;
	struct insn insn;

	return !machine_code(machine, -1, ip, time_ns, &view) &&
	       !insn_read(view.data, view.left, ip, 64, &insn) && insn_next(&insn) == next &&
	       (insn.class == INSN_CALL || insn.class == INSN_CALL_INDIRECT);
}

static bool is_after_call(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	for (unsigned size = 2; size <= 8; size++)
		if (is_call_at(machine, ip - size, time_ns, ip))
			return true;
	return false;
}

/* Whether a return, by its TIP, goes to where it would have gone without: then it has none, if
 * returns are compressed. */
static bool is_needless(const struct pt_flow *flow, uint64_t ip)
{
	return !flow->config->noretcomp && flow->return_count &&
	       flow->returns[(flow->return_top - 1) % RETURN_STACK] == ip;
}

static bool is_elsewhere(const struct pt_flow *flow, uint64_t ip)
{
	return flow->return_count && flow->returns[(flow->return_top - 1) % RETURN_STACK] != ip;
}

/* A return goes behind a call; a call goes to where a function begins. */
static bool is_odd_target(const struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	uint64_t time_ns = time_conv_ns(&flow->config->conv, flow->clock.now);
	struct machine *machine = block->space->machine;
	struct symbol_view symbol;

	if (block->end == BLOCK_RETURN)
		return !is_after_call(machine, ip, time_ns);
	if (block->insns[block->count - 1].class != INSN_CALL_INDIRECT)
		return false;
	machine_symbol(machine, -1, ip, time_ns, &symbol);
	return symbol.name && symbol.offset > ENDBR_SIZE;
}

void flow_patch_judge(struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	bool is_return = block->end == BLOCK_RETURN, is_odd;

	if (!flow_patch_is_possible(block) || !(ip >> 63))
		return;
	/* programs that leave a stack for another do so, but wrong turns do it more often */
	flow->odd_branches += is_return && is_elsewhere(flow, ip);
	is_odd = is_odd_target(flow, block, ip) || (is_return && is_needless(flow, ip));
	flow->odd_branches += is_odd;
	if (is_odd && flow->where.trail)
		patch_trail_note(flow->where.trail,
				 (struct trail_event){
					 .kind = TRAIL_ODD,
					 .position = pt_cursor_position(&flow->cursor),
					 .time = flow->clock.now,
					 .from = block->ip,
					 .to = ip,
				 });
}
