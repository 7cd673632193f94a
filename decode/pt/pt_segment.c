#include "decode/pt/pt_segment.h"

#include <string.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"

static void set_reference(struct pt_clock *clock, const struct aux_queue *queue, uint64_t position)
{
	const struct aux_span *span = pt_span_at(queue, position);

	clock->reference = span ? span->reference : 0;
}

void pt_segment_feed_cycles(struct pt_clock *clock, const struct aux_queue *queue,
			    uint64_t position, uint64_t cycles)
{
	enum { LONG = 1 << 20 }; /* cycles: so rare that a closer look costs nothing */

	if (cycles < LONG) {
		pt_clock_cyc(clock, cycles);
		return;
	}
	set_reference(clock, queue, position);
	pt_clock_long_cyc(clock, cycles);
}

void pt_segment_feed_clock(struct pt_clock *clock, const struct aux_queue *queue, uint64_t position,
			   const struct pt_context *context, struct pt_tsc_group *group)
{
	const struct pt_config *config = clock->config;

	if (config->only_vmcs && !(context->nr && context->vmcs == config->only_vmcs))
		return;
	group->guest = context->nr && !config->guest_tsc_raw;
	group->vmcs = context->vmcs;
	set_reference(clock, queue, position);
	pt_clock_tsc(clock, group);
}

static void feed(struct pt_walk *walk, uint64_t position, struct pt_tsc_group *group)
{
	pt_segment_feed_clock(&walk->clock, walk->cursor.queue, position, &walk->context, group);
}

void pt_walk_init(struct pt_walk *walk, const struct aux_queue *queue,
		  const struct pt_config *config, const struct pt_offsets *offsets,
		  uint64_t min_size)
{
	uint64_t from = config->snapshot ? pt_psb_after(queue, 0) : 0;

	walk->config = config;
	walk->min_size = min_size;
	walk->grid = walk->stop = 0;
	walk->ended = walk->leaps = false;
	walk->context = pt_context_unknown();
	pt_clock_init(&walk->clock, config);
	if (offsets)
		walk->clock.offsets = *offsets;
	pt_cursor_init(&walk->cursor, queue, config, from);
	walk->segment = (struct pt_segment){ .queue = queue, .from = from, .fresh = true };
	walk->segment.context = walk->context;
	walk->segment.clock = walk->clock;
}

void pt_walk_resume(struct pt_walk *walk, const struct pt_segment *segment)
{
	walk->segment = *segment;
	walk->context = segment->context;
	walk->clock = segment->clock;
	walk->ended = false;
	pt_cursor_init(&walk->cursor, walk->cursor.queue, walk->config, segment->from);
}

/* End the open segment here and open the next. */
static void cut(struct pt_walk *walk, uint64_t to, uint64_t next_from, bool lost,
		struct pt_segment *ret)
{
	*ret = walk->segment;
	ret->to = to;
	ret->to_psb = next_from == to && !lost;
	walk->segment.from = next_from;
	walk->segment.fresh = lost;
	walk->segment.lost = lost;
	walk->segment.context = walk->context;
	walk->segment.clock = walk->clock;
}

/* A bad packet: nothing is known up to the next PSB, or loss. */
static void resync(struct pt_walk *walk)
{
	pt_clock_doubt(&walk->clock);
	pt_cursor_resync(&walk->cursor);
}

static void take_psb(struct pt_walk *walk)
{
	struct pt_psb_state state;

	/* What a broken group stated before it broke is still valid. */
	const int r = pt_cursor_psb(&walk->cursor, &state);

	pt_context_update(&walk->context, &state);
	if (state.have_cbr)
		pt_clock_cbr(&walk->clock, state.cbr);
	if (state.have_tsc)
		feed(walk, state.position, &state.tsc);
	if (r == -PTVM_BAD_PACKET)
		resync(walk);
}

static void take_tsc(struct pt_walk *walk, const struct pt_packet *packet)
{
	struct pt_tsc_group group = { .tsc = packet->payload };
	uint64_t position = pt_cursor_position(&walk->cursor);

	pt_cursor_tma(&walk->cursor, &group);
	feed(walk, position, &group);
}

static void take_packet(struct pt_walk *walk, const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_TSC: take_tsc(walk, packet); break;
	case PT_MTC: pt_clock_mtc(&walk->clock, (uint8_t)packet->payload); break;
	case PT_CYC:
		pt_segment_feed_cycles(&walk->clock, walk->cursor.queue,
				       pt_cursor_position(&walk->cursor), packet->payload);
		break;
	case PT_CBR: pt_clock_cbr(&walk->clock, (uint8_t)packet->payload); break;
	case PT_OVF:
		pt_clock_doubt(&walk->clock);
		walk->context.in_tx = false;
		break;
	case PT_VMCS: walk->context.vmcs = packet->payload; break;
	case PT_PIP:
		walk->context.nr = packet->flag;
		walk->context.cr3 = packet->payload;
		break;
	case PT_MODE_EXEC:
		walk->context.bits = pt_context_bits(packet->payload);
		walk->context.if_clear = !(packet->payload & PT_EXEC_IF);
		break;
	case PT_MODE_TSX: walk->context.in_tx = packet->payload & 1; break;
	default: break;
	}
}

/* How many bytes, from the first of 8 on, are PADs or short TNTs: even numbers other than 2. */
static unsigned tnt_run(uint64_t bytes)
{
	const uint64_t ones = 0x0101010101010101, twos = bytes ^ 2 * ones;
	/* the lowest byte that is 2 has its high bit set here, and none below it */
	uint64_t others = ((twos - ones) & ~twos & ones << 7) | (bytes & ones);

	return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

/* Take the packets that make up nearly all of a trace in one loop: those of the flow are stepped
 * over, cycles are added up. */
static void skip_flow(struct pt_walk *walk)
{
	const uint8_t *p = walk->cursor.p, *limit = pt_cursor_limit(&walk->cursor);
	uint64_t cycles = 0;

	if (walk->cursor.block || walk->cursor.window.end - p < PT_WINDOW_SLACK)
		return;
	limit = limit < walk->cursor.window.end - PT_WINDOW_SLACK
			? limit
			: walk->cursor.window.end - PT_WINDOW_SLACK;
	while (p < limit) {
		uint8_t byte = *p;

		if (!(byte & 1) && byte != 2) {
			p += p[1] & 1 ? 1 : tnt_run(load_le(p, 8));
		} else if ((byte & 7) == 3) {
			cycles += byte >> 3;
			p++;
		} else if ((byte & 7) == 7 && !(p[1] & 1)) {
			cycles += (uint64_t)(byte >> 3 | p[1] >> 1 << 5);
			p += 2;
		} else if (pt_ip_packet_size(byte)) {
			p += pt_ip_packet_size(byte);
		} else if (byte == PT_MTC_BYTE) {
			pt_clock_cyc(&walk->clock, cycles);
			cycles = 0;
			pt_clock_mtc(&walk->clock, p[1]);
			p += PT_MTC_SIZE;
		} else {
			break;
		}
	}
	pt_clock_cyc(&walk->clock, cycles);
	walk->cursor.p = p;
}

/* Data was lost: the open segment ends before, the next begins behind. */
static void lose(struct pt_walk *walk, uint64_t to, struct pt_segment *ret)
{
	struct pt_cursor *cursor = &walk->cursor;

	pt_clock_lost(&walk->clock);
	if (walk->config->snapshot) {
		pt_cursor_seek(cursor, pt_psb_after(cursor->queue, pt_cursor_position(cursor)));
	} else {
		/* The host's kernel went on with the trace; which VMCS it has then is not told. */
		walk->context.nr = false;
		walk->context.vmcs = PT_NO_VMCS;
	}
	cut(walk, to, pt_cursor_position(cursor), true, ret);
}

/* The open segment is to end at the first PSB from here on. This is never behind the next point of
 * the grid: from there on the cuts do not depend on those before, so that a walk can begin there.
 */
static uint64_t next_cut(const struct pt_walk *walk)
{
	uint64_t from = walk->segment.from, least = walk->min_size ? walk->min_size : 1;
	uint64_t end = least > UINT64_MAX - from ? UINT64_MAX : from + least;
	uint64_t next = walk->grid ? (from / walk->grid + 1) * walk->grid : UINT64_MAX;

	return end < next ? end : next;
}

/* Whether it is certain that these bytes have no MODE.Exec of another mode. Bytes that only look
 * like one count as one. */
static bool keeps_mode(const uint8_t *p, const uint8_t *end, uint8_t bits)
{
	while (p < end && (p = memchr(p, PT_MODE_BYTE, (size_t)(end - p))) && ++p < end)
		if (*p >> 5 == PT_MODE_EXEC_LEAF && pt_context_bits(*p) != bits)
			return false;
	return true;
}

/* Whether a PSB+ states all that the walk carries, except for the mode, and shows that the trace
 * has no time: with TSCEn each PSB+ has a TSC (SDM "PSB+"). */
static bool is_landing(const struct pt_walk *walk, uint64_t psb, struct pt_psb_state *ret)
{
	struct pt_cursor cursor;

	pt_cursor_init(&cursor, walk->cursor.queue, walk->config, psb + PT_PSB_SIZE);
	return !pt_cursor_psb(&cursor, ret) && ret->have_pip && ret->have_vmcs && ret->have_tsx &&
	       !ret->have_tsc;
}

/* The PSB where a leap ends, and what its PSB+ states; `to` where there is none. A PSB+ without an
 * IP has no MODE.Exec either. If the mode may have changed up to there, a later PSB+ with it is
 * taken. */
static uint64_t find_landing(const struct pt_walk *walk, const struct aux_span *span, uint64_t to,
			     struct pt_psb_state *ret)
{
	const struct aux_queue *queue = walk->cursor.queue;
	const uint8_t *start = span->data - span->position;
	uint64_t first = pt_psb_after(queue, next_cut(walk)), psb = first;

	if (first >= to || !is_landing(walk, first, ret))
		return to;
	if (ret->have_exec ||
	    keeps_mode(start + walk->segment.from, start + first, walk->context.bits))
		return first;
	while (psb < to && is_landing(walk, psb, ret) && !ret->have_exec)
		psb = pt_psb_after(queue, psb + PT_PSB_SIZE);
	return psb < to && ret->have_exec ? psb : to;
}

/* End the open segment at a PSB further on in its span, without a look at the packets before that;
 * false where they matter. */
static bool leap(struct pt_walk *walk, struct pt_segment *ret)
{
	enum { SEARCHED = 64 << 10 }; /* bytes */
	const struct aux_span *span = pt_span_at(walk->cursor.queue, walk->segment.from);
	struct pt_psb_state state;
	uint64_t from = next_cut(walk), psb, to;

	if (!walk->leaps || walk->clock.now || walk->clock.ratio || !span)
		return false;
	to = span->position + span->size;
	if (from >= to)
		return false;
	if (to - from > SEARCHED)
		to = from + SEARCHED;
	psb = find_landing(walk, span, to, &state);
	if (psb >= to)
		return false;
	pt_context_update(&walk->context, &state);
	cut(walk, psb, psb, false, ret);
	pt_cursor_seek(&walk->cursor, psb + PT_PSB_SIZE);
	take_psb(walk);
	return true;
}

/* Take a packet in. Returns whether the open segment ends before it. */
static bool take(struct pt_walk *walk, const struct pt_packet *packet, struct pt_segment *ret)
{
	uint64_t position = pt_cursor_position(&walk->cursor) - PT_PSB_SIZE;
	bool ends;

	if (packet->kind != PT_PSB) {
		take_packet(walk, packet);
		return false;
	}
	ends = position >= next_cut(walk);
	if (ends)
		cut(walk, position, position, false, ret);
	take_psb(walk);
	return ends;
}

/* Read a packet. Returns whether the open segment has ended. */
static bool step(struct pt_walk *walk, struct pt_segment *ret)
{
	uint64_t position = pt_cursor_position(&walk->cursor);
	struct pt_packet packet;

	switch (pt_cursor_next(&walk->cursor, &packet)) {
	case 0: return take(walk, &packet, ret);
	case -PTVM_BAD_PACKET: resync(walk); return false;
	case -PTVM_INCONSISTENT: lose(walk, position, ret); return true;
	default:
		walk->ended = true;
		cut(walk, walk->cursor.queue->size, 0, true, ret);
		return true;
	}
}

int pt_walk_next(struct pt_walk *walk, struct pt_segment *ret)
{
	if (walk->ended)
		return -PTVM_END;
	if (leap(walk, ret))
		return 0;
	do {
		skip_flow(walk);
		if (walk->stop && pt_cursor_position(&walk->cursor) >= walk->stop)
			return -PTVM_END;
	} while (!step(walk, ret));
	return 0;
}
