#include "decode/flow/flow_packet.h"

#include "decode/base/error.h"
#include "decode/flow/flow_cycles.h"
#include "decode/flow/flow_way_back.h"

/* With `quick`, code is not looked at: an instruction is known to have run if a packet tells its
 * address. */
static void say_ip(struct flow_run *run, uint64_t ip, bool leaves)
{
	struct pt_flow *flow = run->flow;

	if (!flow->quick || flow->gaps_only)
		return;
	flow_add(run, FLOW_IP, ip)->flags = leaves ? FLOW_TAKEN : 0;
	flow->insns++;
}

/* A TIP with `quick`: the branch that it belongs to is not looked for. */
static void go_quickly(struct flow_run *run, uint64_t ip)
{
	flow_commit_context(run);
	say_ip(run, ip, false);
	run->flow->ip = ip;
	run->flow->addresses++;
}

/* It is no longer known where the flow is, nor in which block. */
static void stop(struct pt_flow *flow, enum flow_state state)
{
	flow->state = state;
	flow->block = NULL;
}

static bool knows_ip(const struct pt_flow *flow)
{
	return flow->state == FLOW_RUNNING || flow->config->no_branches;
}

static void add_event(struct flow_run *run, const struct pt_packet *packet, bool with_ip)
{
	const uint64_t ip = with_ip || knows_ip(run->flow) ? run->flow->ip : 0;
	struct flow_item *item;

	run->flow->events += packet->kind != PT_PSB && packet->kind != PT_CBR;
	if (!ip)
		flow_say_switch(run);
	if (run->flow->gaps_only)
		return;
	flow_tell_time(run);
	item = flow_add(run, FLOW_EVENT, ip);
	item->count = packet->kind;
	item->extra = packet->count;
	item->flags = with_ip ? FLOW_TAKEN : 0;
	flow_add(run, FLOW_VALUE, packet->payload);
}

/* Whether a control flow event is a branch by itself, with a FUP and a TIP, as an interrupt is.
 * Events of instructions, such as iret, have a FUP, and the instruction is the branch. Types are
 * those of the SDM's section "Control Flow Event (CFE) Packet". */
static bool is_branch_event(const struct pt_packet *packet)
{
	enum {
		CFE_INTR = 1,
		CFE_SMI = 3,
		CFE_SIPI = 5,
		CFE_INIT = 6,
		CFE_VMEXIT = 8,
		CFE_VMEXIT_INTR = 9,
		CFE_SHUTDOWN = 10,
		CFE_UINTR = 12,
		CFE_SWINTR = 14,
	};
	const unsigned branches = 1 << CFE_INTR | 1 << CFE_SMI | 1 << CFE_SIPI | 1 << CFE_INIT |
				  1 << CFE_VMEXIT | 1 << CFE_VMEXIT_INTR | 1 << CFE_SHUTDOWN |
				  1 << CFE_UINTR | 1 << CFE_SWINTR;

	return packet->kind == PT_CFE && branches >> packet->payload & 1;
}

/* Tell the events that were waiting for a FUP. Returns whether none of them is a branch. */
static bool tell_announced(struct flow_run *run, bool with_ip)
{
	struct flow_announced *announced = &run->flow->announced;
	bool plain = true;

	for (uint32_t i = 0; i < announced->event_count; i++) {
		add_event(run, &announced->events[i], with_ip);
		plain &= !is_branch_event(&announced->events[i]);
	}
	announced->event_count = 0;
	return plain;
}

/* The FUP that was announced does not come, or its address is of no use. */
static void give_up_fup(struct flow_run *run)
{
	struct flow_announced *announced = &run->flow->announced;

	if (announced->event_count)
		(void)tell_announced(run, false);
	announced->fup_is_plain = announced->aborting = false;
}

static void take_tip(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	uint64_t ip = pt_cursor_ip(&flow->cursor, packet);

	flow_tell_time(run);
	if (flow->announced.event_count) /* their FUP has not come */
		(void)tell_announced(run, false);
	flow->announced.fup_is_plain = false;
	if (!packet->count) { /* out of context: nobody knows where this goes */
		if (flow->state == FLOW_RUNNING)
			flow_gap(run, GAP_MISMATCH, flow->ip);
		return;
	}
	if (flow->state != FLOW_RUNNING) {
		flow_begin_at(run, ip, 0);
		say_ip(run, ip, false);
		return;
	}
	if (!flow->announced.at_fup) {
		if (flow->quick)
			go_quickly(run, ip);
		else
			flow_take_branch(run, ip);
		return;
	}
	flow->announced.at_fup = false;
	if (flow->announced.aborting)
		flow_say(run, FLOW_ABORT, 0);
	flow->announced.aborting = false;
	flow_commit_context(run);
	flow_say(run, FLOW_ASYNC, ip);
	say_ip(run, ip, false);
	flow->addresses++;
	flow->ip = ip;
	flow->block = NULL;
}

void flow_take_pge(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	uint64_t ip = pt_cursor_ip(&flow->cursor, packet);

	flow_tell_time(run);
	flow->announced.fup_is_plain = flow->announced.aborting = false;
	if (!packet->count) {
		stop(flow, FLOW_LOST);
		return;
	}
	flow_begin_at(run, ip, 0);
	flow_cycles_begin(flow);
	say_ip(run, ip, false);
}

void flow_take_pgd(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	uint64_t ip = pt_cursor_ip(&flow->cursor, packet);

	flow_tell_time(run);
	give_up_fup(run);
	if (!packet->count)
		ip = 0;
	if (flow->state == FLOW_RUNNING && flow->announced.at_fup)
		flow_say(run, FLOW_END_ASYNC, ip);
	else if (flow->state == FLOW_RUNNING && !flow->quick)
		flow_end_by_branch(run, ip);
	stop(flow, FLOW_DISABLED);
	flow->tnt_count = 0;
	flow->announced.at_fup = flow->announced.overflowed = false;
	flow_commit_context(run);
}

/* Is it known what the next FUP is for? */
static bool is_fup_announced(const struct flow_announced *announced)
{
	return announced->event_count || announced->fup_is_plain || announced->aborting;
}

/* The flow has reached the address that a FUP told: see what the FUP was for. */
static void settle_fup(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	bool plain = flow->announced.fup_is_plain;

	if (flow->announced.event_count)
		plain |= tell_announced(run, true);
	flow->announced.fup_is_plain = false;
	flow->announced.at_fup = !plain;
	if (!plain)
		say_ip(run, flow->ip, true);
	if (plain)
		flow_commit_context(run);
}

/* Where nothing is followed it tells of the events alone. */
static void take_event_fup(struct flow_run *run, uint64_t ip)
{
	run->flow->ip = ip;
	run->flow->addresses++;
	(void)tell_announced(run, true);
}

/* Packets about flow are off, but not those of events. */
static bool tells_events_alone(const struct pt_flow *flow)
{
	return flow->state == FLOW_DISABLED && flow->announced.event_count;
}

static void take_fup(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	uint64_t ip = pt_cursor_ip(&flow->cursor, packet);
	bool after_overflow = flow->announced.overflowed;

	if (packet->count)
		flow_tell_time(run);
	if (packet->count && (flow->config->no_branches || tells_events_alone(flow))) {
		take_event_fup(run, ip);
		return;
	}
	if (!packet->count || flow->state == FLOW_DISABLED) { /* APL12 */
		give_up_fup(run);
		return;
	}
	if (flow->state == FLOW_LOST || flow_walk_to(run, ip))
		flow_begin_at(run, ip, 0);
	flow->addresses++;
	/* the one that an overflow has may be missing (SKD010) */
	if (!after_overflow || is_fup_announced(&flow->announced))
		settle_fup(run);
}

static void take_ovf(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	give_up_fup(run);
	flow_gap(run, GAP_OVERFLOW, flow->ip);
	pt_clock_doubt(&flow->clock);
	flow->announced.overflowed = true;
	flow->next_context.in_tx = false;
}

/* Go on from where a PSB+ says, with nothing known but what it states. */
static void settle_psb(struct flow_run *run, const struct pt_psb_state *state)
{
	struct pt_flow *flow = run->flow;

	give_up_fup(run);
	flow->tnt_count = 0;
	if (flow->state == FLOW_RUNNING && state->have_ip)
		(void)flow_walk_to(run, state->ip);
	else if (flow->state == FLOW_RUNNING && !flow->quick)
		flow_say(run, FLOW_END_ASYNC, 0);
	pt_context_update(&flow->next_context, state);
	if (flow->quick > 1)
		flow->state = FLOW_RUNNING;
	if (state->have_ip && flow->state != FLOW_RUNNING)
		flow_begin_at(run, state->ip, FLOW_STATED);
	flow_commit_context(run);
	if (!state->have_ip)
		flow->state = FLOW_DISABLED;
	flow->block = NULL;
	flow->ip = state->ip;
	flow->addresses++;
	flow->psbs++;
	return_stack_clear(&flow->calls);
	flow->announced.at_fup = flow->announced.overflowed = false;
}

/* At a segment's first PSB. What led to it is in the items of the former segment. */
static void start_at_psb(struct flow_run *run, const struct pt_psb_state *state)
{
	struct pt_flow *flow = run->flow;

	if (!flow->segment.fresh && state->have_ip) {
		flow->state = FLOW_RUNNING;
		flow->ip = state->ip;
		flow_say(run, FLOW_HERE, state->ip);
	}
	settle_psb(run, state);
}

static void bad_packet(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	flow_gap(run, GAP_BAD_PACKET, flow->ip);
	pt_clock_doubt(&flow->clock);
	pt_cursor_resync(&flow->cursor);
	if (pt_cursor_position(&flow->cursor) > flow->segment.to)
		pt_cursor_seek(&flow->cursor, flow->segment.to);
}

static void feed_tsc(struct pt_flow *flow, uint64_t position, struct pt_tsc_group *group)
{
	pt_segment_feed_clock(&flow->clock, flow->segment.queue, position, &flow->next_context,
			      group);
}

void flow_take_mtc(struct pt_flow *flow, uint8_t payload)
{
	pt_clock_mtc(&flow->clock, payload);
	flow_cycles_count(flow);
}

static void take_cbr(struct pt_flow *flow, uint8_t payload)
{
	if (payload != flow->clock.cbr)
		flow_cycles_begin(flow);
	pt_clock_cbr(&flow->clock, payload);
}

static void take_psb(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	uint64_t position = pt_cursor_position(&flow->cursor) - PT_PSB_SIZE;
	struct pt_psb_state state;
	bool changed_cbr;
	int r;

	flow_tell_time(run);
	r = pt_cursor_psb(&flow->cursor, &state);
	state.have_ip &= !flow->config->no_branches; /* there is nothing to go on with */
	if (position == flow->segment.from)
		start_at_psb(run, &state);
	else
		settle_psb(run, &state);
	if (position >= flow->segment.to) {
		flow->state = FLOW_DONE;
		return;
	}
	changed_cbr = state.have_cbr && state.cbr != flow->clock.cbr;
	if (state.have_cbr)
		take_cbr(flow, state.cbr);
	if (state.have_tsc)
		feed_tsc(flow, position, &state.tsc);
	flow_cycles_count(flow);
	flow_tell_time(run);
	add_event(run, &(struct pt_packet){ .kind = PT_PSB, .payload = position }, false);
	if (changed_cbr)
		add_event(run, &(struct pt_packet){ .kind = PT_CBR, .payload = state.cbr }, false);
	if (state.have_ip)
		say_ip(run, state.ip, false);
	if (r == -PTVM_BAD_PACKET)
		bad_packet(run);
}

static void take_timing(struct pt_flow *flow, const struct pt_packet *packet)
{
	struct pt_tsc_group group = { .tsc = packet->payload };
	uint64_t position = pt_cursor_position(&flow->cursor);

	switch (packet->kind) {
	case PT_TSC:
		pt_cursor_tma(&flow->cursor, &group);
		feed_tsc(flow, position, &group);
		flow_cycles_begin(flow);
		break;
	case PT_MTC: flow_take_mtc(flow, (uint8_t)packet->payload); break;
	case PT_CBR: take_cbr(flow, (uint8_t)packet->payload); break;
	case PT_CYC:
		flow->cycles += packet->payload;
		pt_segment_feed_cycles(&flow->clock, flow->segment.queue, position,
				       packet->payload);
		break;
	default: break;
	}
}

static void take_mode_exec(struct pt_flow *flow, const struct pt_packet *packet)
{
	flow->next_context.bits = pt_context_bits(packet->payload);
	flow->next_context.if_clear = !(packet->payload & PT_EXEC_IF);
	/* before a FUP it tells of the interrupt flag only (event trace); between a FUP and its
	 * TIP, or before a TIP, of the target's mode */
	if (flow->config->have_event_trace && !flow->announced.at_fup)
		flow->announced.fup_is_plain = true;
}

/* A FUP follows unless packets are off. */
static void take_tsx(struct pt_flow *flow, const struct pt_packet *packet)
{
	flow->next_context.in_tx = packet->payload & 1;
	if (flow->state == FLOW_DISABLED)
		return;
	flow->announced.aborting = packet->payload & 2;
	flow->announced.fup_is_plain = !flow->announced.aborting;
}

/* Does the next FUP tell where it happened? Of MWAIT, and of the entry to a C-state that it leads
 * to, no bit of the packet says so (SDM "Power Event Trace": MWAIT, PWRE, EXSTOP and FUP). A
 * control flow event that is a branch has the FUP of that, unless packets about flow are off; its
 * bit says that it has one of its own. */
static bool waits_for_fup(const struct pt_flow *flow, const struct pt_packet *packet)
{
	const struct flow_announced *announced = &flow->announced;
	bool by_mwait = false;

	for (uint32_t i = 0; i < announced->event_count; i++)
		by_mwait |= announced->events[i].kind == PT_MWAIT;
	return packet->flag || packet->kind == PT_MWAIT || (packet->kind == PT_PWRE && by_mwait) ||
	       (is_branch_event(packet) && flow->state == FLOW_RUNNING);
}

/* Packets about something other than the flow. */
static void take_event(struct flow_run *run, const struct pt_packet *packet)
{
	struct flow_announced *announced = &run->flow->announced;

	if (!waits_for_fup(run->flow, packet)) {
		add_event(run, packet, false);
		return;
	}
	if (announced->event_count == FLOW_ANNOUNCED)
		(void)tell_announced(run, false);
	announced->events[announced->event_count++] = *packet;
}

static void take_tnt(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;

	flow->tnt = packet->payload;
	flow->tnt_count = flow->state == FLOW_RUNNING && !flow->quick ? packet->count : 0;
	flow->announced.at_fup = false;
	if (flow->way_back.ip && flow->state == FLOW_LOST)
		flow_way_back_take(run, packet);
}

/* Is it a packet that --itrace=qq does not use, about what happens between two PSB+ groups? */
static bool is_detail(const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_PSB:
	case PT_TSC:
	case PT_MTC:
	case PT_CYC:
	case PT_CBR:
	case PT_PIP:
	case PT_VMCS:
	case PT_MODE_EXEC:
	case PT_MODE_TSX: return false;
	default: return true;
	}
}

/* Is it an IP packet that nobody can decompress? The first one behind a loss that has a whole IP
 * ends that, or a PSB. */
static bool is_indefinite(struct pt_flow *flow, const struct pt_packet *packet)
{
	enum { SIGN_EXTENDED = 3, WHOLE = 6 }; /* IPBytes (SDM "IP Compression") */

	switch (packet->kind) {
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
	case PT_FUP:
		flow->announced.lacks_ip = packet->count != SIGN_EXTENDED && packet->count != WHOLE;
		return flow->announced.lacks_ip;
	case PT_PSB: flow->announced.lacks_ip = false; return false;
	default: return false;
	}
}

static void take_packet(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;

	if (flow->quick > 1 && is_detail(packet))
		return;
	if (flow->announced.lacks_ip && is_indefinite(flow, packet)) {
		if (packet->kind == PT_FUP)
			give_up_fup(run);
		return;
	}
	switch (packet->kind) {
	case PT_TNT:
		flow_tell_time(run);
		take_tnt(run, packet);
		break;
	case PT_TIP: take_tip(run, packet); break;
	case PT_TIP_PGE: flow_take_pge(run, packet); break;
	case PT_TIP_PGD: flow_take_pgd(run, packet); break;
	case PT_FUP: take_fup(run, packet); break;
	case PT_PSB: take_psb(run); break;
	case PT_OVF: take_ovf(run); break;
	case PT_MODE_EXEC: take_mode_exec(flow, packet); break;
	case PT_MODE_TSX: take_tsx(flow, packet); break;
	case PT_PIP:
		flow->next_context.nr = packet->flag;
		flow->next_context.cr3 = packet->payload;
		break;
	case PT_VMCS: flow->next_context.vmcs = packet->payload; break;
	case PT_TRACESTOP: stop(flow, FLOW_DISABLED); break;
	case PT_TSC:
	case PT_MTC:
	case PT_CYC: take_timing(flow, packet); break;
	case PT_CBR:
		if (packet->payload != flow->clock.cbr)
			add_event(run, packet, false);
		take_timing(flow, packet);
		break;
	case PT_PTW:
	case PT_EXSTOP:
	case PT_MWAIT:
	case PT_PWRE:
	case PT_PWRX:
	case PT_BBP:
	case PT_BIP:
	case PT_BEP:
	case PT_CFE:
	case PT_EVD:
	case PT_TRIG: take_event(run, packet); break;
	default: break;
	}
}

int flow_fetch_tip(struct flow_run *run, uint64_t *ret)
{
	struct pt_flow *flow = run->flow;
	struct pt_packet packet;

	for (;;) {
		uint64_t position = pt_cursor_position(&flow->cursor);

		if (pt_cursor_next(&flow->cursor, &packet))
			return -PTVM_INCONSISTENT;
		switch (packet.kind) {
		case PT_TSC:
		case PT_MTC:
		case PT_CYC:
		case PT_CBR: take_timing(flow, &packet); break;
		case PT_TIP:
			flow_tell_time(run);
			*ret = pt_cursor_ip(&flow->cursor, &packet);
			return packet.count ? 0 : -PTVM_INCONSISTENT;
		default: pt_cursor_seek(&flow->cursor, position); return -PTVM_INCONSISTENT;
		}
	}
}

static int end_segment(struct flow_run *run)
{
	give_up_fup(run);
	run->flow->state = FLOW_DONE;
	return -PTVM_END;
}

/* Where the packets of a segment end. The PSB+ at the end is read, too, for the address that it
 * states. Where there is damage before the PSB, another packet may reach into it. */
static uint64_t end_of_packets(const struct pt_segment *segment)
{
	return segment->to_psb ? segment->to + PT_PSB_SIZE : segment->to;
}

static int take_next(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	struct pt_packet packet;
	int r;

	if (pt_cursor_position(&flow->cursor) >= end_of_packets(&flow->segment))
		return end_segment(run);
	flow->told_ip = flow->cursor.last_ip.ip;
	r = pt_cursor_next(&flow->cursor, &packet);
	if (r == -PTVM_BAD_PACKET) {
		bad_packet(run);
		return 0;
	}
	if (r)
		return end_segment(run);
	take_packet(run, &packet);
	return 0;
}

int flow_next(struct flow_run *run)
{
	if (run->flow->state == FLOW_DONE)
		return -PTVM_END;
	if (!run->flow->tnt_count || run->flow->state != FLOW_RUNNING)
		return take_next(run);
	flow_run_tnt(run);
	return 0;
}
