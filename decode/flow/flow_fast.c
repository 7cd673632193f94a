/* The fast path of pt_flow. One loop, whose state lives in registers, takes the few kinds of
 * packets that make up nearly all of a trace, as long as they lead along blocks that the clear path
 * (flow_packet.c, flow_step.c) has linked. It stops in front of the first packet for which that
 * does not hold, or, with TNT bits left over, within it. */
#include "decode/flow/flow_packet.h"
#include "decode/flow/stretch.h"

/* Inlined into one function, so that struct fast never exists in memory. */
#define FAST static inline __attribute__((always_inline))

struct fast {
	struct flow_run *run;
	struct pt_flow *flow;
	const uint8_t *p, *limit;
	const uint8_t *until; /* from here on the batch ends where an address is told */
	struct block *block;
	struct flow_item *item, *enough, *item_end;
	uint64_t insns;
	uint64_t cycles; /* that the clock does not know of yet */
	uint32_t addresses;
	const uint8_t *agreed; /* the last return; NULL: none */
	bool gaps_only, ended;
	/* Indirect branches, and returns that were not made before, are for the clear path: it
	 * notes which are odd, and where they go. */
	bool is_logged;
};

FAST void settle_cycles(struct fast *fast)
{
	fast->flow->cycles += fast->cycles;
	pt_clock_cyc(&fast->flow->clock, fast->cycles);
	fast->cycles = 0;
}

FAST void tell_time(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;

	if (fast->gaps_only)
		return;
	settle_cycles(fast);
	if (flow->clock.now == flow->told.time && flow->cycles == flow->told.cycles)
		return;
	*fast->item++ = (struct flow_item){ .kind = FLOW_TIME,
					    .value = flow->clock.now,
					    .count = (uint32_t)(flow->cycles - flow->told.cycles) };
	flow->told.time = flow->clock.now;
	flow->told.cycles = flow->cycles;
}

FAST void leave_block(struct fast *fast, bool taken)
{
	struct block *block = fast->block;

	fast->insns += block->count;
	for (unsigned i = 0; i < block->push_count; i++)
		return_stack_push(&fast->flow->calls, block_pushes(block)[i]);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){
			.kind = FLOW_BLOCK, .flags = taken, .count = block->count, .block = block
		};
}

/* A compressed return, in a block without calls: false when the clear path must take it. */
FAST bool take_return(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;
	struct block *to;

	if (!flow->calls.count || fast->block->push_count)
		return false;
	to = block_follow(fast->block, return_stack_last(&flow->calls));
	if (!to || (fast->is_logged && to != fast->block->successor[1]))
		return false;
	leave_block(fast, true);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){ .kind = FLOW_TO, .value = to->ip };
	if (fast->is_logged)
		fast->agreed = fast->p + 1;
	fast->block->successor[1] = to;
	fast->block = to;
	return_stack_drop(&flow->calls);
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

FAST bool run_stretch(struct fast *fast, const struct stretch *stretch)
{
	struct pt_flow *flow = fast->flow;

	/* at its greatest depth the stretch would push addresses out of the full stack */
	if (flow->calls.count + stretch->depth > RETURN_STACK)
		return false;
	for (unsigned i = 0; i < stretch->push_count; i++)
		return_stack_push(&flow->calls, stretch->pushes[i]);
	fast->insns += stretch->insns;
	if (fast->is_logged && stretch->returns)
		fast->agreed = fast->p + 1;
	fast->block = stretch->to;
	return true;
}

/* The same, where nobody asks for blocks. */
FAST bool pass_tnt(struct fast *fast, uint8_t bits)
{
	struct code *code = fast->flow->where.code;

	do {
		const struct stretch *stretch;

		if (fast->block->end == BLOCK_RETURN && !fast->block->push_count) {
			if (!stretch_first_bit(bits) || !take_return(fast))
				return take_tnt(fast, bits);
			bits = stretch_drop_bit(bits);
			continue;
		}
		stretch = stretch_get(code, fast->block, bits);
		if (!stretch || stretch->rest == bits || !run_stretch(fast, stretch))
			return take_tnt(fast, bits);
		bits = stretch->rest;
	} while (bits != STRETCH_NO_BITS);
	fast->p++;
	return true;
}

FAST void end_here(struct fast *fast)
{
	fast->ended = true;
	fast->limit = fast->p;
}

/* An address was told: the batch may end here. */
FAST void end_if_enough(struct fast *fast)
{
	if (fast->p >= fast->until || (!fast->gaps_only && fast->item >= fast->enough))
		end_here(fast);
}

/* One TIP for an indirect branch or return to a block that has been there before. */
FAST bool take_tip(struct fast *fast, uint8_t byte)
{
	struct pt_flow *flow = fast->flow;
	struct pt_last_ip last_ip = flow->cursor.last_ip;
	uint64_t ignored;
	struct block *to;

	if (byte >> 5 == 0 ||
	    (fast->block->end != BLOCK_INDIRECT && fast->block->end != BLOCK_RETURN))
		return false;
	to = block_follow(fast->block, pt_ip_update(&last_ip, byte >> 5, load_le(fast->p + 1, 8)));
	if (!to)
		return false;
	fast->block->successor[1] = to;
	flow->cursor.last_ip = last_ip;
	fast->p += pt_ip_packet_size(byte);
	tell_time(fast);
	leave_block(fast, true);
	if (fast->block->end == BLOCK_RETURN)
		(void)return_stack_pop(&flow->calls, &ignored);
	if (!fast->gaps_only)
		*fast->item++ = (struct flow_item){ .kind = FLOW_TO, .value = to->ip };
	fast->block = to;
	fast->addresses++;
	end_if_enough(fast);
	return true;
}

/* Write the state of the loop to the flow, for functions that work on that. */
FAST void put_back(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;

	settle_cycles(fast);
	if (fast->agreed) {
		flow->cursor.p = fast->agreed;
		flow->agreed = pt_cursor_position(&flow->cursor);
	}
	flow->cursor.p = fast->p;
	flow->block = fast->block;
	flow->ip = fast->block->ip;
	flow->insns += fast->insns;
	flow->addresses += fast->addresses;
	flow->told_ip = flow->cursor.last_ip.ip;
	fast->insns = fast->addresses = 0;
	flow->idle_blocks = 0;
	fast->run->batch->count = (uint32_t)(fast->item - fast->run->batch->items);
}

/* Read the next packet if it is one with an IP of this opcode. */
FAST bool read_ip_packet(struct fast *fast, uint8_t opcode, struct pt_packet *ret)
{
	uint8_t byte = *fast->p;

	if ((byte & 0x1f) != opcode || !pt_ip_packet_size(byte))
		return false;
	fast->p += pt_ip_packet_size(byte);
	ret->count = byte >> 5;
	ret->payload = load_le(fast->p + 1 - pt_ip_packet_size(byte), 8);
	return true;
}

/* If the next packet is a TIP.PGE, take it. */
FAST void take_pge(struct fast *fast)
{
	struct pt_packet packet;

	while (fast->p < fast->limit && !*fast->p)
		fast->p += pt_pad_run(fast->p);
	if (fast->p < fast->limit && read_ip_packet(fast, PT_TIP_PGE_BYTE, &packet))
		flow_take_pge(fast->run, &packet);
}

/* Tracing ends, and begins again with the next packet: that is what a filter of addresses does. */
FAST bool take_pgd(struct fast *fast)
{
	struct pt_flow *flow = fast->flow;
	struct pt_packet packet;

	if (!read_ip_packet(fast, PT_TIP_PGD_BYTE, &packet))
		return false;
	put_back(fast);
	flow_take_pgd(fast->run, &packet);
	if (flow_is_in_doubt(flow))
		end_here(fast);
	else
		take_pge(fast);
	flow->cursor.p = fast->p;
	fast->item = fast->run->batch->items + fast->run->batch->count;
	fast->block = flow_knows_block(flow) ? flow->block : NULL;
	if (flow->state == FLOW_RUNNING)
		end_if_enough(fast);
	return fast->block && fast->item < fast->item_end;
}

FAST void take_cycles(struct fast *fast, unsigned cycles, unsigned size)
{
	fast->p += size;
	fast->cycles += cycles;
}

FAST void take_mtc(struct fast *fast)
{
	settle_cycles(fast);
	flow_take_mtc(fast->flow, fast->p[1]);
	fast->p += PT_MTC_SIZE;
}

/* Returns false at a packet that is for the clear path. */
FAST bool take_other(struct fast *fast, uint8_t byte)
{
	if ((byte & 7) == 3)
		take_cycles(fast, byte >> 3, 1);
	else if ((byte & 7) == 7 && !(fast->p[1] & 1))
		take_cycles(fast, byte >> 3 | fast->p[1] >> 1 << 5, 2);
	else if (!fast->is_logged && (byte & 0x1f) == PT_TIP_BYTE && pt_ip_packet_size(byte))
		return take_tip(fast, byte);
	else if (byte == PT_MTC_BYTE)
		take_mtc(fast);
	else
		return !fast->is_logged && take_pgd(fast);
	return true;
}

FAST bool take_any_tnt(struct fast *fast, uint8_t byte)
{
	return fast->gaps_only ? pass_tnt(fast, byte) : take_tnt(fast, byte);
}

FAST void run_loop(struct fast *fast, bool gaps_only, bool is_logged)
{
	fast->gaps_only = gaps_only;
	fast->is_logged = is_logged;
	while (fast->p < fast->limit && (gaps_only || fast->item < fast->item_end)) {
		uint8_t byte = *fast->p;

		if (!byte)
			fast->p += pt_pad_run(fast->p);
		else if (byte & 1 || byte == 2 ? !take_other(fast, byte)
					       : !take_any_tnt(fast, byte))
			return;
	}
}

/* Where a position of the stream is in the window, or the end of the window that is nearest. */
static const uint8_t *place_of(const struct pt_window *window, uint64_t position)
{
	if (position <= window->position)
		return window->data;
	if (position - window->position >= (uint64_t)(window->end - window->data))
		return window->end;
	return window->data + (position - window->position);
}

static bool is_common(struct pt_flow *flow)
{
	const struct pt_cursor *cursor = &flow->cursor;

	return !flow->announced.at_fup && !flow->announced.fup_is_plain && !flow->tnt_count &&
	       !cursor->block && cursor->window.end - cursor->p >= PT_WINDOW_SLACK &&
	       flow_knows_block(flow);
}

/* Where it begins within a line of the cache the same code takes several per cent more time. */
__attribute__((aligned(64))) bool flow_run_fast(struct flow_run *run, uint64_t until)
{
	struct pt_flow *flow = run->flow;
	struct flow_batch *batch = run->batch;
	const uint8_t *safe = flow->cursor.window.end - PT_WINDOW_SLACK;
	struct fast fast = {
		.run = run,
		.flow = flow,
		.p = flow->cursor.p,
		.limit = pt_cursor_limit(&flow->cursor),
		.item = batch->items + batch->count,
		.enough = batch->items + flow_enough_items(run),
		.item_end = batch->items + (batch->room - FLOW_MARGIN),
	};

	if (!is_common(flow))
		return false;
	if (fast.limit > safe)
		fast.limit = safe;
	fast.until = place_of(&flow->cursor.window, until);
	fast.block = flow->block;
	/* the compiler makes a loop for each */
	if (!flow->gaps_only)
		run_loop(&fast, false, false);
	else if (!stretch_table(flow->where.code))
		return false;
	else if (flow->where.log || flow->where.returns)
		run_loop(&fast, true, true);
	else
		run_loop(&fast, true, false);
	if (fast.block)
		put_back(&fast);
	return fast.ended;
}
