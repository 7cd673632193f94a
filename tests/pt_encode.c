#include "tests/pt_encode.h"

#include <stdlib.h>

#include "decode/base/vec.h"

static void put(struct pt_bytes *out, uint64_t byte)
{
	if (!vec_grow((void **)&out->data, &out->room, out->size, 1))
		abort();
	out->data[out->size++] = (uint8_t)byte;
}

static void put_le(struct pt_bytes *out, uint64_t value, unsigned count)
{
	for (; count; count--, value >>= 8)
		put(out, value & 0xff);
}

/* 02, the second byte of the opcode, and a payload. */
static void put_extended(struct pt_bytes *out, uint8_t opcode, uint64_t payload, unsigned count)
{
	put(out, 2);
	put(out, opcode);
	put_le(out, payload, count);
}

void pt_put_bytes(struct pt_bytes *out, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(out, ((const uint8_t *)data)[i]);
}

static void put_tnt(struct pt_bytes *out, const struct pt_packet *packet)
{
	uint64_t stop = (uint64_t)1 << packet->count;

	if (packet->count > 6 || packet->size == 8)
		put_extended(out, 0xa3, stop | packet->payload, 6);
	else
		put(out, (stop | packet->payload) << 1);
}

static void put_cyc(struct pt_bytes *out, uint64_t cycles)
{
	unsigned size = 1;

	for (uint64_t rest = cycles >> 5; rest; rest >>= 7)
		size++;
	pt_put_cyc_padded(out, cycles, size);
}

void pt_put_tma(struct pt_bytes *out, uint16_t ctc, uint16_t fast)
{
	pt_put(out, &(struct pt_packet){ .kind = PT_TMA, .payload = ctc, .count = fast });
}

void pt_put_psb_plus(struct pt_bytes *out, const struct pt_psb_plus *group)
{
	pt_put_psb(out);
	pt_put_value(out, PT_TSC, group->tsc);
	if (!group->no_tma)
		pt_put_tma(out, group->ctc, group->fast);
	pt_put(out, &(struct pt_packet){ .kind = PT_PIP, .flag = group->nr, .payload = 0x1000 });
	pt_put_value(out, PT_VMCS, group->vmcs);
	pt_put_value(out, PT_PSBEND, 0);
}

void pt_put_cyc_padded(struct pt_bytes *out, uint64_t cycles, unsigned size)
{
	put(out, 3 | (size > 1 ? 4 : 0) | (cycles & 0x1f) << 3);
	for (cycles >>= 5; size > 1; size--, cycles >>= 7)
		put(out, (cycles & 0x7f) << 1 | (size > 2));
}

static void put_trig(struct pt_bytes *out, const struct pt_packet *packet)
{
	put(out, 0xd9);
	put(out, (packet->flag ? 0x80 : 0) | (packet->count ? 0x40 : 0));
	put(out, packet->payload);
	if (packet->count)
		put_le(out, packet->count, 2);
}

static void put_tma(struct pt_bytes *out, const struct pt_packet *packet)
{
	put_extended(out, 0x73, packet->payload, 2);
	put(out, 0);
	put_le(out, packet->count, 2);
}

/* BIP, CFE and the like: fields beside the payload decide the opcode. */
static void put_block_or_event(struct pt_bytes *out, const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_BBP:
		put_extended(out, 0x63, packet->payload | (packet->count == 4 ? 0x80 : 0), 1);
		break;
	case PT_BIP:
		put(out, packet->count << 3 | 4);
		put_le(out, packet->payload, packet->size == 9 ? 8 : 4);
		break;
	case PT_BEP: put_extended(out, packet->flag ? 0xb3 : 0x33, 0, 0); break;
	case PT_CFE:
		put_extended(out, 0x13, packet->payload | (packet->flag ? 0x80 : 0), 1);
		put(out, packet->count);
		break;
	case PT_EVD:
		put_extended(out, 0x53, packet->count, 1);
		put_le(out, packet->payload, 8);
		break;
	case PT_PTW:
		put_extended(out, (packet->flag ? 0x92 : 0x12) | (packet->count == 8 ? 0x20 : 0),
			     packet->payload, packet->count);
		break;
	default: abort();
	}
}

static void put_ip_packet(struct pt_bytes *out, uint8_t opcode, const struct pt_packet *packet)
{
	static const unsigned sizes[8] = { 0, 2, 4, 6, 6, 0, 8, 0 };

	put(out, packet->count << 5 | opcode);
	put_le(out, packet->payload, sizes[packet->count & 7]);
}

void pt_put(struct pt_bytes *out, const struct pt_packet *packet)
{
	uint64_t payload = packet->payload;

	switch (packet->kind) {
	case PT_PAD: put(out, 0); break;
	case PT_TNT: put_tnt(out, packet); break;
	case PT_TIP: put_ip_packet(out, 0x0d, packet); break;
	case PT_TIP_PGE: put_ip_packet(out, 0x11, packet); break;
	case PT_TIP_PGD: put_ip_packet(out, 0x01, packet); break;
	case PT_FUP: put_ip_packet(out, 0x1d, packet); break;
	case PT_MODE_EXEC: put_le(out, 0x99 | payload << 8, 2); break;
	case PT_MODE_TSX: put_le(out, 0x2099 | payload << 8, 2); break;
	case PT_PIP: put_extended(out, 0x43, payload >> 5 << 1 | packet->flag, 6); break;
	case PT_VMCS: put_extended(out, 0xc8, payload, 5); break;
	case PT_TSC: put_le(out, 0x19 | payload << 8, 8); break;
	case PT_TMA: put_tma(out, packet); break;
	case PT_MTC: put_le(out, 0x59 | payload << 8, 2); break;
	case PT_CBR: put_extended(out, 0x03, payload, 2); break;
	case PT_CYC: put_cyc(out, payload); break;
	case PT_PSB: pt_put_psb(out); break;
	case PT_PSBEND: put_extended(out, 0x23, 0, 0); break;
	case PT_OVF: put_extended(out, 0xf3, 0, 0); break;
	case PT_TRACESTOP: put_extended(out, 0x83, 0, 0); break;
	case PT_MNT:
		put_extended(out, 0xc3, 0x88, 1);
		put_le(out, payload, 8);
		break;
	case PT_EXSTOP: put_extended(out, packet->flag ? 0xe2 : 0x62, 0, 0); break;
	case PT_MWAIT: put_extended(out, 0xc2, payload, 8); break;
	case PT_PWRE: put_extended(out, 0x22, payload, 2); break;
	case PT_PWRX: put_extended(out, 0xa2, payload, 5); break;
	case PT_TRIG: put_trig(out, packet); break;
	default: put_block_or_event(out, packet);
	}
}

void pt_put_value(struct pt_bytes *out, enum pt_packet_kind kind, uint64_t payload)
{
	pt_put(out, &(struct pt_packet){ .kind = kind, .payload = payload });
}

/* The shortest form: SDM table "FUP/TIP IP Reconstruction". */
static unsigned shortest_ipbytes(uint64_t last, uint64_t ip)
{
	if (last >> 16 == ip >> 16)
		return 1;
	if (last >> 32 == ip >> 32)
		return 2;
	if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
		return 3;
	return last >> 48 == ip >> 48 ? 4 : 6;
}

void pt_put_ip(struct pt_bytes *out, enum pt_packet_kind kind, uint64_t ip, int ipbytes)
{
	struct pt_packet packet = { .kind = kind, .payload = ip };

	packet.count = ipbytes == PT_IP_AUTO ? (uint16_t)shortest_ipbytes(out->last_ip, ip)
					     : (uint16_t)ipbytes;
	pt_put(out, &packet);
	if (ipbytes)
		out->last_ip = ip;
}

void pt_put_psb(struct pt_bytes *out)
{
	for (int i = 0; i < 8; i++)
		put_extended(out, 0x82, 0, 0);
	out->last_ip = 0;
}

void pt_bytes_free(struct pt_bytes *out)
{
	free(out->data);
	*out = (struct pt_bytes){ 0 };
}
