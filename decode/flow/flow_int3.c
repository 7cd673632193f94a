#include "decode/flow/flow_int3.h"

#include "decode/base/error.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/patch_forms.h"

enum {
	INSNS_MOST = 512, /* that may be it */
	WAYS_MOST = 256,
	PACKETS_MOST = 256, /* of the handler, */
	TIPS_MOST = 16,     /* and of them those that may be its return: mostly it is the first */
	INT3 = 0xcc,
};

/* Where the handler may return to, for each instruction that an INT3 may stand for, in order. */
struct ways {
	struct {
		uint64_t site, to;
	} items[WAYS_MOST];
	unsigned count;
};

static bool is_handler(struct pt_flow *flow, uint64_t ip)
{
	struct code_space *space;

	if (!(ip >> 63))
		return false;
	space = flow_space(flow, ip);
	return space && space->machine && space->bits == 64 &&
	       machine_int3_handler(space->machine) == ip;
}

static void add_way(struct ways *ways, uint64_t site, uint64_t to)
{
	if (to && ways->count < WAYS_MOST) {
		ways->items[ways->count].site = site;
		ways->items[ways->count++].to = to;
	}
}

/* An instruction leads to where it does in the copy, or in one of its other forms. To find these
 * takes too long for a trial. */
static void add_ways(struct pt_flow *flow, struct machine *machine, const struct insn *insn,
		     struct ways *ret)
{
	struct patch_forms forms;
	struct patched_insn other;

	if (!patch_forms_may_be(machine, insn, flow_ns(flow)))
		return;
	add_way(ret, insn->ip, insn_next(insn));
	add_way(ret, insn->ip, insn->target);
	if (flow->trial || !flow->int3_steps)
		return;
	patch_forms_find(machine, insn, flow_ns(flow), &forms);
	flow->int3_steps -= forms.looked_at < flow->int3_steps ? forms.looked_at : flow->int3_steps;
	for (unsigned i = 0; i < forms.count; i++)
		if (patch_change_insn(&forms.items[i].change, insn->ip, &other))
			add_way(ret, insn->ip, other.to);
}

static bool ends_with_interrupt(const struct block *block)
{
	return block->count && block->insns[block->count - 1].class == INSN_INT;
}

/* All instructions from where the flow is up to the next branch that needs a packet. */
static void find_ways(struct pt_flow *flow, struct ways *ret)
{
	uint64_t ip = flow->ip;

	for (unsigned left = INSNS_MOST; left > 0;) {
		struct block *block = flow_block_at(flow, ip);

		if (!block || !block->count || !flow_patch_is_possible(block))
			return;
		for (unsigned i = 0; i < block->count && left > 0; i++, left--)
			add_ways(flow, block->space->machine, &block->insns[i], ret);
		if (ends_with_interrupt(block)) /* it is here */
			ret->count = 0;
		if (block->end != BLOCK_GOES_ON)
			return;
		ip = block->next;
	}
}

/* The instruction that leads to `to`; 0: none. */
static uint64_t find_site(const struct ways *ways, uint64_t to)
{
	for (unsigned i = 0; i < ways->count; i++)
		if (ways->items[i].to == to)
			return ways->items[i].site;
	return 0;
}

/* The instruction that leads to where one of the next TIPs goes, the first of which that is so; 0:
 * none is. */
static uint64_t choose(const struct pt_flow *flow, const struct ways *ways)
{
	struct pt_cursor cursor = flow->cursor;
	struct pt_packet packet;
	unsigned tips = 0;
	uint64_t site;

	pt_cursor_settle_copy(&cursor, &flow->cursor);
	for (unsigned i = 0; i < PACKETS_MOST && tips < TIPS_MOST; i++) {
		if (pt_cursor_next(&cursor, &packet) || packet.kind == PT_OVF)
			return 0;
		if (packet.kind == PT_PSB)
			cursor.last_ip.ip = 0;
		if (packet.kind != PT_TIP && packet.kind != PT_FUP && packet.kind != PT_TIP_PGE &&
		    packet.kind != PT_TIP_PGD)
			continue;
		site = find_site(ways, pt_cursor_ip(&cursor, &packet));
		if (site && packet.count && packet.kind == PT_TIP)
			return site;
		tips += packet.kind == PT_TIP;
	}
	return 0;
}

/* The flow's block becomes an INT3 at `site`, up to which it is followed. */
static int stop_at(struct flow_run *run, uint64_t site)
{
	static const uint8_t int3 = INT3;
	struct pt_flow *flow = run->flow;
	struct code_space *space;
	struct block *block;

	if (flow_walk_to(run, site))
		return -PTVM_INCONSISTENT;
	space = flow_space(flow, site);
	block = space ? block_get(flow->where.code, space, site, flow_ns(flow)) : NULL;
	flow->block =
		block && block->count ? block_variant(flow->where.code, block, 0, &int3, 1) : NULL;
	return 0;
}

int flow_int3_find(struct flow_run *run, uint64_t ip)
{
	struct ways ways;
	uint64_t site;

	if (!is_handler(run->flow, ip))
		return 0;
	ways.count = 0;
	find_ways(run->flow, &ways);
	site = choose(run->flow, &ways);
	return site ? stop_at(run, site) : 0;
}
