#include "decode/pt/pt_cursor.h"

#include <string.h>

#include "decode/base/error.h"

static void open_window(struct pt_cursor *cursor, uint64_t position)
{
	pt_window_at(cursor->queue, position, &cursor->window);
	cursor->p = cursor->window.data;
}

void pt_cursor_seek(struct pt_cursor *cursor, uint64_t position)
{
	const struct pt_window *window = &cursor->window;

	cursor->hidden = NULL;
	if (position >= window->position &&
	    position - window->position < (uint64_t)(window->limit - window->data))
		cursor->p = window->data + (position - window->position);
	else
		open_window(cursor, position);
}

void pt_cursor_settle_copy(struct pt_cursor *copy, const struct pt_cursor *from)
{
	const struct pt_window *window = &from->window;
	uint8_t *stitch = copy->window.stitch;

	if (window->data != window->stitch)
		return;
	copy->p = stitch + (from->p - window->stitch);
	copy->hidden = NULL;
	copy->window.data = stitch;
	copy->window.limit = stitch + (window->limit - window->stitch);
	copy->window.end = stitch + (window->end - window->stitch);
}

/* Erratum SKD007: on these models, as libipt lists them, an OVF may take the place of all but the
 * first byte of a CYC. It then looks like a CYC of two bytes and one more, which no CPU sends there
 * unless its counter is full. */
static bool is_skd007(const struct pt_config *config)
{
	static const uint8_t models[] = { 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6 };

	return config->cpu_family == 6 && config->cpu_model < 256 &&
	       memchr(models, (int)config->cpu_model, sizeof(models));
}

static const uint8_t ovf[] = { 0x02, 0xf3 };

/* `size` bytes of a CYC are at the cursor. */
static bool is_cyc_cut_by_overflow(const struct pt_cursor *cursor, unsigned size)
{
	return cursor->cyc_hides_ovf && size == sizeof(ovf) &&
	       cursor->window.end - cursor->p > (ptrdiff_t)sizeof(ovf) &&
	       !memcmp(cursor->p + 1, ovf, sizeof(ovf));
}

/* The first byte from `p` on that has those of an OVF behind it; or one up to which there is none,
 * not far away, so that little is searched again after a seek. */
static const uint8_t *find_hidden_ovf(const uint8_t *p, const uint8_t *end)
{
	enum { SEARCHED = 1024 };
	const uint8_t *found;

	if (end - p > SEARCHED)
		end = p + SEARCHED;
	found = p < end ? memmem(p + 1, (size_t)(end - p - 1), ovf, sizeof(ovf)) : NULL;
	if (found)
		return found - 1;
	return end - p > (ptrdiff_t)sizeof(ovf) ? end - sizeof(ovf) : p;
}

const uint8_t *pt_cursor_hidden_ovf(struct pt_cursor *cursor)
{
	const struct pt_window *window = &cursor->window;

	if (!cursor->hidden || cursor->hidden < cursor->p)
		cursor->hidden = find_hidden_ovf(cursor->p, window->end);
	return cursor->hidden < window->limit ? cursor->hidden : window->limit;
}

void pt_cursor_init(struct pt_cursor *cursor, const struct aux_queue *queue,
		    const struct pt_config *config, uint64_t position)
{
	cursor->queue = queue;
	cursor->config = config;
	cursor->block = PT_NO_BLOCK;
	cursor->last_ip.ip = 0;
	cursor->cyc_hides_ovf = is_skd007(config);
	cursor->hidden = NULL;
	open_window(cursor, position);
}

/* Erratum SKZ84: on Xeon Scalable processors the TMA of a guest may be garbage, and one byte longer
 * than a TMA is. pt_packet_read() refuses it for its reserved bits. These are the families and
 * models that libipt lists. */
static bool is_skz84(const struct pt_config *config)
{
	static const uint8_t models[] = { 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae };

	if (config->cpu_family == 19)
		return config->cpu_model == 1;
	for (size_t i = 0; config->cpu_family == 6 && i < sizeof(models); i++)
		if (models[i] == config->cpu_model)
			return true;
	return false;
}

static bool skip_bad_tma(struct pt_cursor *cursor)
{
	enum { BAD_TMA_SIZE = 8 };

	if (cursor->window.end - cursor->p < BAD_TMA_SIZE || cursor->p[0] != 2 ||
	    cursor->p[1] != 0x73 || !is_skz84(cursor->config))
		return false;
	cursor->p += BAD_TMA_SIZE;
	return true;
}

/* Whether the cursor is at a loss of data that it has not reported yet. */
static bool is_at_loss(const struct pt_cursor *cursor)
{
	return cursor->window.lost_after && cursor->p == cursor->window.end;
}

/* The window is used up: go to the next one, or return why there is none. */
static int next_window(struct pt_cursor *cursor)
{
	bool lost = is_at_loss(cursor);

	if (cursor->window.last)
		return -PTVM_END;
	pt_cursor_seek(cursor, pt_cursor_position(cursor));
	return lost ? -PTVM_INCONSISTENT : 0;
}

/* A packet is cut off by the end of the window: behind it data was lost, or the queue ends. */
static int cut_short(struct pt_cursor *cursor)
{
	const struct aux_span *span = pt_span_at(cursor->queue, pt_cursor_position(cursor));
	const struct aux_span *end = cursor->queue->spans + cursor->queue->count;

	do
		span++;
	while (span < end && !span->lost_before);
	if (span >= end) {
		pt_cursor_seek(cursor, cursor->queue->size);
		return -PTVM_END;
	}
	pt_cursor_seek(cursor, span->position);
	return -PTVM_INCONSISTENT;
}

void pt_cursor_resync(struct pt_cursor *cursor)
{
	bool lost;
	uint64_t to = pt_psb_resync(cursor->queue, pt_cursor_position(cursor), &lost);

	cursor->block = PT_NO_BLOCK;
	pt_cursor_seek(cursor, to - lost);
	cursor->p += lost; /* the end of the window before it: from there the loss is seen */
}

static void skip_pads(struct pt_cursor *cursor)
{
	const uint8_t *p = cursor->p, *limit = cursor->window.limit;

	while (p < limit && !*p)
		p += limit - p < 8 ? 1 : pt_pad_run(p);
	cursor->p = p;
}

int pt_cursor_next(struct pt_cursor *cursor, struct pt_packet *ret)
{
	int r;

	for (;;) {
		while (cursor->p >= cursor->window.limit) {
			r = next_window(cursor);
			if (r)
				return r;
		}
		if (!*cursor->p) {
			skip_pads(cursor);
			continue;
		}
		r = pt_packet_read(cursor->p, (size_t)(cursor->window.end - cursor->p),
				   cursor->block, ret);
		if (!r && ret->kind == PT_CYC && is_cyc_cut_by_overflow(cursor, ret->size))
			cursor->p++;
		else if (r != -PTVM_BAD_PACKET || !skip_bad_tma(cursor))
			break;
	}
	if (r == -PTVM_END)
		return cut_short(cursor);
	if (r)
		return r;
	cursor->p += ret->size;
	if (ret->kind >= PT_PSB)
		cursor->block = pt_block_after(cursor->block, ret);
	return 0;
}

/* Whether a TIP.PGE comes before anything else that happens: packets are disabled now. */
static bool is_pge_next(struct pt_cursor *cursor)
{
	enum { LOOK_AHEAD = 16 };
	const uint64_t position = pt_cursor_position(cursor);
	const enum pt_block_context block = cursor->block;
	struct pt_packet packet = { .kind = PT_BAD };
	bool is_state = true;

	if (is_at_loss(cursor))
		return false;
	for (int i = 0; i < LOOK_AHEAD && is_state; i++) {
		if (pt_cursor_next(cursor, &packet))
			break;
		switch (packet.kind) {
		case PT_MODE_EXEC:
		case PT_MODE_TSX:
		case PT_TSC:
		case PT_TMA:
		case PT_MTC:
		case PT_CYC:
		case PT_CBR:
		case PT_PIP:
		case PT_VMCS: break;
		default: is_state = false;
		}
	}
	cursor->block = block;
	pt_cursor_seek(cursor, position);
	return packet.kind == PT_TIP_PGE;
}

/* Take in what a packet of a group states. False for one that cannot be in a group: the PSBEND is
 * missing. */
static bool note(struct pt_psb_state *state, const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_TSC:
		state->have_tsc = true;
		state->tsc.tsc = packet->payload;
		state->tsc.in_psb = true;
		break;
	case PT_TMA:
		state->tsc.have_tma = true;
		state->tsc.ctc = (uint16_t)packet->payload;
		state->tsc.fast = packet->count;
		break;
	case PT_PIP:
		state->have_pip = true;
		state->nr = packet->flag;
		state->cr3 = packet->payload;
		break;
	case PT_VMCS:
		state->have_vmcs = true;
		state->vmcs = packet->payload;
		break;
	case PT_CBR:
		state->have_cbr = true;
		state->cbr = (uint8_t)packet->payload;
		break;
	case PT_MODE_EXEC:
		state->have_exec = true;
		state->exec = (uint8_t)packet->payload;
		break;
	case PT_MODE_TSX:
		state->have_tsx = true;
		state->in_tx = packet->payload & 1;
		break;
	case PT_MTC:
	case PT_CYC:
	case PT_FUP:
	case PT_MNT: break;
	default: return false;
	}
	return true;
}

int pt_cursor_psb(struct pt_cursor *cursor, struct pt_psb_state *ret)
{
	struct pt_packet packet;
	int r;

	*ret = (struct pt_psb_state){ .position = pt_cursor_position(cursor) - PT_PSB_SIZE,
				      .tsc.vmcs = PT_NO_VMCS };
	cursor->last_ip.ip = 0;
	for (;;) {
		uint64_t before = pt_cursor_position(cursor);

		r = pt_cursor_next(cursor, &packet);
		if (r)
			return r;
		if (packet.kind == PT_PSBEND)
			break;
		if (packet.kind == PT_OVF) {
			pt_cursor_seek(cursor, before);
			ret->have_ip = false;
			return 0;
		}
		if (!note(ret, &packet)) {
			pt_cursor_seek(cursor, before);
			return -PTVM_BAD_PACKET;
		}
		if (packet.kind == PT_FUP) {
			ret->have_ip = packet.count != 0;
			ret->ip = pt_cursor_ip(cursor, &packet);
		}
		if (packet.kind == PT_TSC)
			ret->tsc_position = before;
	}
	if (ret->have_ip && is_pge_next(cursor))
		ret->have_ip = false; /* BDM70 */
	return 0;
}

void pt_cursor_tma(struct pt_cursor *cursor, struct pt_tsc_group *group)
{
	uint64_t before = pt_cursor_position(cursor);
	struct pt_packet packet;

	if (is_at_loss(cursor))
		return;
	/* MTC, CBR and CYC may lie between the two */
	for (int i = 0; i < 8; i++) {
		if (pt_cursor_next(cursor, &packet))
			break;
		if (packet.kind == PT_TMA) {
			group->have_tma = true;
			group->ctc = (uint16_t)packet.payload;
			group->fast = packet.count;
			if (i)
				break;
			return;
		}
		if (packet.kind != PT_MTC && packet.kind != PT_CBR && packet.kind != PT_CYC)
			break;
	}
	pt_cursor_seek(cursor, before);
}
