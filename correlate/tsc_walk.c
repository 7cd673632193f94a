#include "correlate/tsc_walk.h"

#include "decode/base/error.h"
#include "decode/pt/aux_pages.h"

enum { TSC_SIZE = 7 };
enum { PEBS_BASIC = 4, PEBS_BASIC_TSC = 2 }; /* type of the block, id of the item */
enum { LONG_CYC = 7, LONG_CYC_MORE = 1 };    /* low 3 bits; of what follows */

/* TNT, PAD, short CYC, and those with an IP are nearly all of a trace, and say nothing here. */
static uint8_t skip_size(uint8_t byte)
{
	unsigned size = pt_ip_packet_size(byte);

	return size ? (uint8_t)size : (byte != 2 && !(byte & 1)) || (byte & LONG_CYC) == 3;
}

void tsc_walk_init(struct tsc_walk *walk, const struct aux_queue *queue,
		   const struct pt_config *config, struct bytes mapping)
{
	walk->config = config;
	walk->mapping = mapping;
	walk->held = 0;
	walk->vmcs = PT_NO_VMCS;
	walk->nr = walk->basic_pebs = walk->ended = false;
	walk->lost = true;
	crystal_reset(&walk->crystal, config);
	for (unsigned byte = 0; byte < 256; byte++)
		walk->skip[byte] = skip_size((uint8_t)byte);
	pt_cursor_init(&walk->cursor, queue, config, config->snapshot ? pt_psb_after(queue, 0) : 0);
}

/* Skip packets that say nothing here, as long as memory cannot end within one. */
static void skip_flow(struct tsc_walk *walk)
{
	const uint8_t *p = walk->cursor.p, *limit = pt_cursor_limit(&walk->cursor);

	if (walk->cursor.block || walk->cursor.window.end - p < PT_WINDOW_SLACK)
		return;
	if (limit > walk->cursor.window.end - PT_WINDOW_SLACK)
		limit = walk->cursor.window.end - PT_WINDOW_SLACK;
	while (p < limit) {
		if (!(*p & 1) && *p != 2)
			p++; /* a branch; cycles follow more often than not */
		if ((*p & LONG_CYC) == LONG_CYC && !(p[1] & LONG_CYC_MORE)) {
			p += 2;
		} else if (*p == PT_MTC_BYTE) {
			crystal_mtc(&walk->crystal, p[1]);
			p += 2;
		} else if (walk->skip[*p]) {
			p += walk->skip[*p];
		} else {
			break;
		}
	}
	walk->cursor.p = p;
}

/* Fill in an event with what is known at this place. */
static void tell(struct tsc_walk *walk, enum tsc_kind kind, struct tsc_event *ret)
{
	*ret = (struct tsc_event){ .kind = kind, .guest = walk->nr, .vmcs = walk->vmcs };
	ret->count = walk->crystal.count;
	ret->have_count = walk->crystal.known;
	ret->lost = walk->lost;
}

static void tell_tsc(struct tsc_walk *walk, const struct pt_tsc_group *group, uint64_t position,
		     struct tsc_event *ret)
{
	if (group->have_tma)
		crystal_tma(&walk->crystal, group->ctc);
	tell(walk, TSC_PACKET, ret);
	ret->position = position + 1;
	ret->size = TSC_SIZE;
	ret->value = group->tsc;
	ret->have_tma = group->have_tma;
	ret->fast = group->fast;
	walk->lost = false;
}

/* Returns whether the group has a time stamp. */
static bool take_psb(struct tsc_walk *walk, struct tsc_event *ret)
{
	struct pt_psb_state state;

	walk->basic_pebs = false;
	walk->lost |= pt_cursor_psb(&walk->cursor, &state) != 0;
	if (state.have_pip)
		walk->nr = state.nr;
	if (state.have_vmcs && state.vmcs != PT_NO_VMCS)
		walk->vmcs = state.vmcs;
	if (!state.have_tsc)
		return false;
	tell_tsc(walk, &state.tsc, state.tsc_position, ret);
	ret->mode_told = state.have_pip;
	ret->in_psb = true;
	return true;
}

static void take_tsc(struct tsc_walk *walk, const struct pt_packet *packet, struct tsc_event *ret)
{
	struct pt_tsc_group group = { .tsc = packet->payload };
	uint64_t position = pt_cursor_position(&walk->cursor) - packet->size;

	pt_cursor_tma(&walk->cursor, &group);
	tell_tsc(walk, &group, position, ret);
}

static bool take_item(struct tsc_walk *walk, const struct pt_packet *packet, struct tsc_event *ret)
{
	if (!walk->basic_pebs || packet->count != PEBS_BASIC_TSC)
		return false;
	tell(walk, TSC_PEBS, ret);
	ret->size = (uint8_t)(packet->size - 1);
	ret->position = pt_cursor_position(&walk->cursor) - ret->size;
	ret->value = packet->payload;
	return true;
}

/* Returns whether the packet has a time stamp. */
static bool take_packet(struct tsc_walk *walk, const struct pt_packet *packet,
			struct tsc_event *ret)
{
	switch (packet->kind) {
	case PT_PSB: return take_psb(walk, ret);
	case PT_TSC: take_tsc(walk, packet, ret); return true;
	case PT_BIP: return take_item(walk, packet, ret);
	case PT_MTC: crystal_mtc(&walk->crystal, (uint8_t)packet->payload); break;
	case PT_PIP: walk->nr = packet->flag; break;
	case PT_BBP: walk->basic_pebs = packet->payload == PEBS_BASIC; break;
	case PT_OVF: walk->lost = true; break;
	case PT_VMCS:
		if (packet->payload != PT_NO_VMCS)
			walk->vmcs = packet->payload;
		break;
	default: break;
	}
	return false;
}

/* Data was lost, or the queue ends at `position`. */
static void tell_break(struct tsc_walk *walk, uint64_t position, struct tsc_event *ret)
{
	struct pt_cursor *cursor = &walk->cursor;

	tell(walk, TSC_BREAK, ret);
	ret->position = position;
	crystal_reset(&walk->crystal, walk->config);
	walk->lost = true;
	/* The host's kernel went on with the trace; which VMCS it has then is not told. */
	walk->nr = false;
	walk->vmcs = PT_NO_VMCS;
	if (walk->config->snapshot && !walk->ended)
		pt_cursor_seek(cursor, pt_psb_after(cursor->queue, pt_cursor_position(cursor)));
}

static void resync(struct tsc_walk *walk)
{
	walk->lost = true;
	pt_cursor_resync(&walk->cursor);
}

int tsc_walk_next(struct tsc_walk *walk, struct tsc_event *ret)
{
	struct pt_packet packet;

	while (!walk->ended) {
		uint64_t position;
		int r;

		skip_flow(walk);
		position = pt_cursor_position(&walk->cursor);
		aux_pages_pass(&walk->mapping, walk->cursor.queue, &walk->held, position);
		r = pt_cursor_next(&walk->cursor, &packet);
		if (!r && take_packet(walk, &packet, ret))
			return 0;
		if (r == -PTVM_BAD_PACKET)
			resync(walk);
		walk->ended = r == -PTVM_END;
		if (r == -PTVM_END || r == -PTVM_INCONSISTENT) {
			tell_break(walk, position, ret);
			return 0;
		}
	}
	return -PTVM_END;
}
