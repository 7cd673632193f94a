/* The fast path of pt_flow: the few kinds of packets that make up nearly all of a trace, read in
 * one loop whose state lives in registers, along blocks that have been linked by the clear path. It
 * leaves off in front of (or, with TNT bits left over, inside) the first packet that is not so. */
#include "decode/base/bytes.h"
#include "decode/flow_step.h"

/* Inlined into one function, so that struct fast never exists in memory. */
#define FAST static inline __attribute__((always_inline))

struct fast {
	struct pt_flow *flow;
	const uint8_t *p, *limit;
	struct block *block;
	struct flow_item *item, *item_end;
	uint64_t insns;
	uint32_t addresses;
	bool gaps_only;
};

FAST void tell_time(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;

	if (fast->gaps_only ||
	    (flow->clock.now == flow->told_time && flow->cycles == flow->told_cycles))
		return;
	*fast->item++ = (struct flow_item){ .kind = FLOW_TIME,
					    .value = flow->clock.now,
					    .count = (uint32_t)(flow->cycles - flow->told_cycles) };
	flow->told_time = flow->clock.now;
	flow->told_cycles = flow->cycles;
}

FAST void leave_block(struct fast *fast, bool taken)
{
	struct block *block = fast->block;

	fast->insns += block->count;
	if (block->push_count)
		flow_push_calls(fast->flow, block, block->count);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){
			.kind = FLOW_BLOCK, .flags = taken, .count = block->count, .block = block
		};
}

/* The block at `ip`, where a branch that depends on data goes; NULL where the clear path must look.
 */
FAST struct block *follow(const struct block *block, uint64_t ip)
{
	struct block *to = block->successor[1];

	if (to && to->ip == ip)
		return to;
	return block->timed || block->patched ? NULL : block_known(block->space, ip);
}

/* A compressed return, in a block without calls: false when the clear path must take it. */
FAST bool take_return(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;
	struct block *to;

	if (!flow->return_count || fast->block->push_count)
		return false;
	to = follow(fast->block, flow->returns[(flow->return_top - 1) % RETURN_STACK]);
	if (!to)
		return false;
	flow->return_count--;
	flow->return_top--;
	leave_block(fast, true);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){ .kind = FLOW_TO, .value = to->ip };
	fast->block->successor[1] = to;
	fast->block = to;
	return true;
}

/* One short TNT. False when the bits lead to a place that is not linked; those left are kept. */
FAST bool take_tnt(struct fast *fast, uint8_t byte)
{
	unsigned count = 30 - (unsigned)__builtin_clz(byte);

	tell_time(fast);
	do {
		bool bit = byte >> count & 1; /* the oldest is below the stop bit */
		struct block *to = fast->block->successor[bit];

		if (fast->block->end == BLOCK_RETURN && bit && take_return(fast))
			continue;
		if (fast->block->end != BLOCK_CONDITIONAL || !to)
			break;
		leave_block(fast, bit);
		fast->block = to;
	} while (--count);
	fast->p++;
	if (!count)
		return true;
	fast->flow->tnt = byte >> 1;
	fast->flow->tnt_count = count;
	return false;
}

/* One TIP for an indirect branch or return to a block that has been there before. */
FAST bool take_tip(struct fast *fast, uint8_t byte)
{
	struct pt_flow *flow = fast->flow;
	struct pt_last_ip last_ip = flow->cursor.last_ip;
	uint64_t payload = load_le(fast->p + 1, 8), ignored;
	struct block *to;

	if (byte >> 5 == 0 ||
	    (fast->block->end != BLOCK_INDIRECT && fast->block->end != BLOCK_RETURN))
		return false;
	to = follow(fast->block, pt_ip_update(&last_ip, byte >> 5, payload));
	if (!to)
		return false;
	fast->block->successor[1] = to;
	flow->cursor.last_ip = last_ip;
	fast->p += pt_ip_packet_size(byte);
	tell_time(fast);
	leave_block(fast, true);
	if (fast->block->end == BLOCK_RETURN)
		(void)flow_pop(flow, &ignored);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){ .kind = FLOW_TO, .value = to->ip };
	fast->block = to;
	fast->addresses++;
	return true;
}

FAST void take_cycles(struct fast *fast, uint64_t cycles, unsigned size)
{
	fast->p += size;
	fast->flow->cycles += cycles;
	pt_clock_cyc(&fast->flow->clock, cycles);
}

/* Returns false at a packet that is for the clear path. */
FAST bool take_other(struct fast *fast, uint8_t byte)
{
	if ((byte & 7) == 3)
		take_cycles(fast, byte >> 3, 1);
	else if ((byte & 7) == 7 && !(fast->p[1] & 1))
		take_cycles(fast, (uint64_t)(byte >> 3 | fast->p[1] >> 1 << 5), 2);
	else if ((byte & 0x1f) == PT_TIP_BYTE && pt_ip_packet_size(byte))
		return take_tip(fast, byte);
	else
		return false;
	return true;
}

FAST void run_loop(struct fast *fast)
{
	while (fast->p < fast->limit && fast->item < fast->item_end) {
		uint8_t byte = *fast->p;

		if (!byte)
			fast->p += load_le(fast->p, 8) ? 1 : 8;
		else if (!(byte & 1) && byte != 2 ? !take_tnt(fast, byte) : !take_other(fast, byte))
			return;
	}
}

void flow_run_fast(struct flow_run *run, uint64_t until)
{
	struct pt_flow *flow = run->flow;
	struct pt_cursor *cursor = &flow->cursor;
	const uint8_t *safe = cursor->window.end - PT_WINDOW_SLACK;
	struct fast fast = {
		.flow = flow,
		.p = cursor->p,
		.limit = cursor->window.limit,
		.block = flow->block,
		.item = run->batch->items + run->batch->count,
		.item_end = run->batch->items + flow_enough_items(run),
		.gaps_only = flow->gaps_only,
	};

	if (flow->state != FLOW_RUNNING || !flow->block || flow->at_fup || flow->fup_is_plain ||
	    flow->tnt_count || cursor->block || pt_cursor_position(cursor) >= until ||
	    cursor->window.end - cursor->p < PT_WINDOW_SLACK)
		return;
	if (fast.limit > safe)
		fast.limit = safe;
	if ((uint64_t)(fast.limit - cursor->window.data) > until - cursor->window.position)
		fast.limit = cursor->window.data + (until - cursor->window.position);
	run_loop(&fast);
	cursor->p = fast.p;
	flow->block = fast.block;
	flow->ip = fast.block->ip;
	flow->insns += fast.insns;
	flow->addresses += fast.addresses;
	flow->idle_blocks = 0;
	run->batch->count = (uint32_t)(fast.item - run->batch->items);
}
