#include "decode/pt/pt_packet.h"

#include "decode/base/bytes.h"
#include "decode/base/error.h"

/* How the packet with one opcode is laid out. */
struct opcode {
	uint8_t size; /* of the whole packet, in bytes; 0: not an opcode */
	uint8_t kind; /* enum pt_packet_kind */
	bool flag;    /* as in struct pt_packet */
	bool (*payload)(const uint8_t *data, struct pt_packet *packet); /* false: reserved bits */
};

static bool read_mode(const uint8_t *data, struct pt_packet *packet)
{
	unsigned leaf = data[1] >> 5;

	packet->kind = leaf == PT_MODE_TSX_LEAF ? PT_MODE_TSX : PT_MODE_EXEC;
	packet->payload = data[1] & 0x1f;
	return leaf <= 1;
}

static bool read_pip(const uint8_t *data, struct pt_packet *packet)
{
	uint64_t value = load_le(data + 2, 6);

	packet->flag = value & 1;
	packet->payload = value >> 1 << 5; /* CR3[51:5] */
	return true;
}

static bool read_vmcs(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 2, 5);
	return true;
}

static bool read_tsc(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 1, 7);
	return true;
}

/* Reserved bits that are set give away a TMA corrupted by erratum SKZ84 (pt_cursor.c). */
static bool read_tma(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 2, 2);
	packet->count = (uint16_t)(load_le(data + 5, 2) & 0x1ff);
	return !data[4] && !(data[6] & 0xfe);
}

static bool read_byte1(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = data[1];
	return true;
}

static bool read_byte2(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = data[2];
	return true;
}

static bool read_tnt64(const uint8_t *data, struct pt_packet *packet)
{
	uint64_t value = load_le(data + 2, 6);

	if (!value)
		return false; /* no stop bit */
	packet->count = (uint16_t)(63 - __builtin_clzll(value));
	packet->payload = value & (((uint64_t)1 << packet->count) - 1);
	return packet->count > 0;
}

static bool read_mwait(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 2, 8) & 0x3000000ff;
	return true;
}

static bool read_pwre(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 2, 2) & 0xff80;
	return true;
}

static bool read_pwrx(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 2, 5) & 0xfff;
	return true;
}

static bool read_bbp(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = data[2] & 0x1f;
	packet->count = data[2] & 0x80 ? PT_BLOCK_4 : PT_BLOCK_8;
	return true;
}

static bool read_cfe(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = data[2] & 0x1f;
	packet->flag = data[2] & 0x80;
	packet->count = data[3];
	return true;
}

static bool read_evd(const uint8_t *data, struct pt_packet *packet)
{
	packet->count = data[2] & 0x3f;
	packet->payload = load_le(data + 3, 8);
	return true;
}

static bool read_ptw4(const uint8_t *data, struct pt_packet *packet)
{
	packet->count = 4;
	packet->payload = load_le(data + 2, 4);
	return true;
}

static bool read_ptw8(const uint8_t *data, struct pt_packet *packet)
{
	packet->count = 8;
	packet->payload = load_le(data + 2, 8);
	return true;
}

/* MNT is 02 c3 88; its payload is for Intel alone. */
static bool read_mnt(const uint8_t *data, struct pt_packet *packet)
{
	packet->payload = load_le(data + 3, 8);
	return data[2] == 0x88;
}

static bool read_psb(const uint8_t *data, struct pt_packet *packet)
{
	const uint64_t half = 0x8202820282028202;

	return load_le(data, 8) == half && load_le(data + 8, 8) == half;
}

/* Opcodes whose first byte is 02, by the second. */
static const struct opcode extended[256] = {
	[0x03] = { 4, PT_CBR, false, read_byte2 }, [0x12] = { 6, PT_PTW, false, read_ptw4 },
	[0x13] = { 4, PT_CFE, false, read_cfe },   [0x22] = { 4, PT_PWRE, false, read_pwre },
	[0x23] = { 2, PT_PSBEND, false, NULL },    [0x32] = { 10, PT_PTW, false, read_ptw8 },
	[0x33] = { 2, PT_BEP, false, NULL },       [0x43] = { 8, PT_PIP, false, read_pip },
	[0x53] = { 11, PT_EVD, false, read_evd },  [0x62] = { 2, PT_EXSTOP, false, NULL },
	[0x63] = { 3, PT_BBP, false, read_bbp },   [0x73] = { 7, PT_TMA, false, read_tma },
	[0x82] = { 16, PT_PSB, false, read_psb },  [0x83] = { 2, PT_TRACESTOP, false, NULL },
	[0x92] = { 6, PT_PTW, true, read_ptw4 },   [0xa2] = { 7, PT_PWRX, false, read_pwrx },
	[0xa3] = { 8, PT_TNT, false, read_tnt64 }, [0xb2] = { 10, PT_PTW, true, read_ptw8 },
	[0xb3] = { 2, PT_BEP, true, NULL },        [0xc2] = { 10, PT_MWAIT, false, read_mwait },
	[0xc3] = { 11, PT_MNT, false, read_mnt },  [0xc8] = { 7, PT_VMCS, false, read_vmcs },
	[0xe2] = { 2, PT_EXSTOP, true, NULL },     [0xf3] = { 2, PT_OVF, false, NULL },
};

/* Opcodes of one byte that have no bits of payload in it. */
static const struct opcode tsc = { 8, PT_TSC, false, read_tsc };
static const struct opcode mtc = { PT_MTC_SIZE, PT_MTC, false, read_byte1 };
static const struct opcode mode = { 2, PT_MODE_EXEC, false, read_mode };

static int read_opcode(const struct opcode *opcode, const uint8_t *data, size_t size,
		       struct pt_packet *ret)
{
	if (!opcode->size)
		return -PTVM_BAD_PACKET;
	if (size < opcode->size)
		return -PTVM_END;
	*ret = (struct pt_packet){ .kind = opcode->kind,
				   .size = opcode->size,
				   .flag = opcode->flag };
	if (opcode->payload && !opcode->payload(data, ret))
		return -PTVM_BAD_PACKET;
	return 0;
}

static int read_short_tnt(uint8_t byte, struct pt_packet *ret)
{
	unsigned count = 30 - (unsigned)__builtin_clz(byte); /* between stop bit and bit 0 */

	*ret = (struct pt_packet){ .kind = PT_TNT, .size = 1, .count = (uint16_t)count };
	ret->payload = (uint64_t)(byte >> 1) & ((1u << count) - 1);
	return 0;
}

/* A count is no longer than 64 bits: more continuation bytes than those take are damage. */
static int read_cyc(const uint8_t *data, size_t size, struct pt_packet *ret)
{
	uint64_t cycles = data[0] >> 3;
	bool more = data[0] & 4;
	unsigned shift = 5, used = 1;

	for (; more; used++, shift += 7) {
		if (used == size)
			return -PTVM_END;
		if (shift > 63)
			return -PTVM_BAD_PACKET;
		cycles |= (uint64_t)(data[used] >> 1) << shift;
		more = data[used] & 1;
	}
	*ret = (struct pt_packet){ .kind = PT_CYC, .size = (uint8_t)used, .payload = cycles };
	return 0;
}

static int read_ip(enum pt_packet_kind kind, const uint8_t *data, size_t size,
		   struct pt_packet *ret)
{
	unsigned used = pt_ip_packet_size(data[0]);

	if (!used)
		return -PTVM_BAD_PACKET;
	if (size < used)
		return -PTVM_END;
	*ret = (struct pt_packet){ .kind = kind,
				   .size = (uint8_t)used,
				   .count = data[0] >> 5,
				   .payload = load_le(data + 1, used - 1) };
	return 0;
}

static int read_bip(unsigned item_size, const uint8_t *data, size_t size, struct pt_packet *ret)
{
	if (size < 1 + item_size)
		return -PTVM_END;
	*ret = (struct pt_packet){ .kind = PT_BIP,
				   .size = (uint8_t)(1 + item_size),
				   .count = data[0] >> 3,
				   .payload = load_le(data + 1, item_size) };
	return 0;
}

/* Not in most versions of the SDM: byte 1 says what follows (as libipt 2.2 has it). */
static int read_trig(const uint8_t *data, size_t size, struct pt_packet *ret)
{
	unsigned used = 3;

	if (size < 2)
		return -PTVM_END;
	used += data[1] & 0x40 ? 2 : 0;
	if (size < used)
		return -PTVM_END;
	*ret = (struct pt_packet){
		.kind = PT_TRIG, .size = (uint8_t)used, .flag = data[1] & 0x80, .payload = data[2]
	};
	if (data[1] & 0x40)
		ret->count = (uint16_t)load_le(data + 3, 2);
	return 0;
}

int pt_packet_read(const uint8_t *data, size_t size, enum pt_block_context block,
		   struct pt_packet *ret)
{
	uint8_t byte;

	if (!size)
		return -PTVM_END;
	byte = data[0];
	if (block && (byte & 7) == 4)
		return read_bip(block, data, size, ret);
	if (!byte) {
		*ret = (struct pt_packet){ .kind = PT_PAD, .size = 1 };
		return 0;
	}
	if (byte == 2)
		return size < 2 ? -PTVM_END : read_opcode(&extended[data[1]], data, size, ret);
	if (!(byte & 1))
		return read_short_tnt(byte, ret);
	if ((byte & 3) == 3)
		return read_cyc(data, size, ret);
	switch (byte & 0x1f) {
	case PT_TIP_BYTE: return read_ip(PT_TIP, data, size, ret);
	case PT_TIP_PGE_BYTE: return read_ip(PT_TIP_PGE, data, size, ret);
	case PT_TIP_PGD_BYTE: return read_ip(PT_TIP_PGD, data, size, ret);
	case PT_FUP_BYTE: return read_ip(PT_FUP, data, size, ret);
	default: break;
	}
	switch (byte) {
	case 0x19: return read_opcode(&tsc, data, size, ret);
	case PT_MTC_BYTE: return read_opcode(&mtc, data, size, ret);
	case PT_MODE_BYTE: return read_opcode(&mode, data, size, ret);
	case 0xd9: return read_trig(data, size, ret);
	default: return -PTVM_BAD_PACKET;
	}
}

enum pt_block_context pt_block_after(enum pt_block_context block, const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_BBP: return (enum pt_block_context)packet->count;
	case PT_BEP:
	case PT_OVF:
	case PT_PSB:
	case PT_PSBEND: return PT_NO_BLOCK;
	default: return block;
	}
}

const uint8_t *pt_psb_find(const uint8_t *p, const uint8_t *end)
{
	static const uint8_t psb[PT_PSB_SIZE] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
						  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

	return end - p < PT_PSB_SIZE ? NULL : memmem(p, (size_t)(end - p), psb, sizeof(psb));
}
