/* Bytes -> one Intel PT packet. Stateless; knows the SDM's encodings and nothing else
 * (SDM vol. 3, "Intel Processor Trace", section "Packet Definitions"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"

enum pt_packet_kind {
	PT_BAD,
	PT_PAD,
	PT_TNT, /* payload: branches, oldest in the highest of `count` bits; 1 = taken */
	PT_TIP,
	PT_TIP_PGE,
	PT_TIP_PGD,
	PT_FUP,       /* the four with an IP: payload raw, `count` = IPBytes field */
	PT_MODE_EXEC, /* payload: bit 0 CS.L, 1 CS.D, 2 IF */
	PT_MODE_TSX,  /* payload: bit 0 InTX, 1 TXAbort */
	PT_PIP,       /* payload: CR3 (4 KiB aligned and PCID bits above 4); flag: NR, non-root */
	PT_VMCS,      /* payload: VMCS address >> 12 */
	PT_TSC,       /* payload: low 56 bits */
	PT_TMA,       /* payload: CTC 15:0; `count`: FastCounter 8:0 */
	PT_MTC,       /* payload: 8 bits of CTC */
	PT_CBR,       /* payload: core:bus ratio */
	PT_CYC,       /* payload: cycles since the last CYC */
	PT_PSB,
	PT_PSBEND,
	PT_OVF,
	PT_TRACESTOP,
	PT_MNT,
	PT_PTW,    /* payload: 4 or 8 bytes (`count`); flag: a FUP follows */
	PT_EXSTOP, /* flag: a FUP follows */
	PT_MWAIT,  /* payload: hints 7:0 and extensions 33:32 */
	PT_PWRE,   /* payload: C-state 15:12, sub C-state 11:8, hardware 7 */
	PT_PWRX,   /* payload: deepest 3:0, last 7:4, wake reason 11:8 */
	PT_BBP,    /* payload: type 4:0; `count`: bytes of each item, 4 or 8 */
	PT_BIP,    /* payload; `count`: item id */
	PT_BEP,    /* flag: a FUP follows */
	PT_CFE,    /* payload: type 4:0; `count`: vector; flag: a FUP follows */
	PT_EVD,    /* payload; `count`: type 5:0 */
	PT_TRIG,   /* payload: trigger bits; `count`: instruction count; flag: a FUP follows */
	PT_PACKET_KINDS,
};

enum {
	PT_PACKET_MAX = 16, /* bytes: a PSB; the longest CYC that counts in 64 bits has 10 */
	PT_PSB_SIZE = 16,
};

/** BIP packets, between BBP and BEP, have the first bytes of short TNT packets: what a byte means
 * there depends on the BBP before. */
enum pt_block_context { PT_NO_BLOCK = 0, PT_BLOCK_4 = 4, PT_BLOCK_8 = 8 };

struct pt_packet {
	enum pt_packet_kind kind;
	uint8_t size; /* bytes in the trace */
	bool flag;
	uint16_t count;
	uint64_t payload;
};

/**
 * Read the packet at `data`.
 *
 * @data   trace bytes; borrowed
 * @size   readable bytes, any number
 * @block  whether the packet lies between BBP and BEP, and the size of items there
 * @ret    filled on success
 *
 * Returns 0, -PTVM_END when the packet goes on past `size`, or -PTVM_BAD_PACKET for bytes that
 * the SDM does not define (reserved IPBytes, MODE leaves, TMA with reserved bits set).
 */
int pt_packet_read(const uint8_t *data, size_t size, enum pt_block_context block,
		   struct pt_packet *ret);

/** The block context after this packet. */
enum pt_block_context pt_block_after(enum pt_block_context block, const struct pt_packet *packet);

/** The first PSB in [p, end), or NULL. */
const uint8_t *pt_psb_find(const uint8_t *p, const uint8_t *end);

/** How many of the 8 bytes at `p` are PADs before any other packet. */
static inline unsigned pt_pad_run(const uint8_t *p)
{
	uint64_t bytes = load_le(p, 8);

	return bytes ? (unsigned)__builtin_ctzll(bytes) / 8 : 8;
}

enum { PT_MTC_BYTE = 0x59, PT_MTC_SIZE = 2 };

/* MODE: bits 7:5 of the byte after that say what of. */
enum { PT_MODE_BYTE = 0x99, PT_MODE_EXEC_LEAF = 0, PT_MODE_TSX_LEAF = 1 };

/* First bytes of the packets with an IP, by bits 4:0, and how many bytes such a packet has. */
enum { PT_TIP_PGD_BYTE = 0x01, PT_TIP_BYTE = 0x0d, PT_TIP_PGE_BYTE = 0x11, PT_FUP_BYTE = 0x1d };

/** Bytes of the packet that begins with `byte` if it is one with an IP; 0 otherwise. Bits 7:5 are
 * IPBytes, of which 5 and 7 are reserved (SDM table "FUP/TIP IP Reconstruction"). */
static inline unsigned pt_ip_packet_size(uint8_t byte)
{
	static const uint8_t sizes[32][8] = {
		[PT_TIP_PGD_BYTE] = { 1, 3, 5, 7, 7, 0, 9 },
		[PT_TIP_BYTE] = { 1, 3, 5, 7, 7, 0, 9 },
		[PT_TIP_PGE_BYTE] = { 1, 3, 5, 7, 7, 0, 9 },
		[PT_FUP_BYTE] = { 1, 3, 5, 7, 7, 0, 9 },
	};
	return sizes[byte & 31][byte >> 5];
}

/** The last IP of the stream, against which IP packets are compressed. Zero it at a PSB. */
struct pt_last_ip {
	uint64_t ip;
};

/**
 * The IP that a packet means, remembered for the next one. IPBytes 0 ("out of context") leaves
 * the last IP as it was and returns it.
 */
static inline uint64_t pt_ip_update(struct pt_last_ip *last, unsigned ipbytes, uint64_t payload)
{
	static const uint64_t updated[8] = {
		[1] = 0xffff,         [2] = 0xffffffff,
		[3] = UINT64_MAX, /* bit 47 goes on to the left */
		[4] = 0xffffffffffff, [6] = UINT64_MAX,
	};
	uint64_t mask = updated[ipbytes & 7];

	if (ipbytes == 3)
		payload = (uint64_t)((int64_t)(payload << 16) >> 16);
	return last->ip = (last->ip & ~mask) | (payload & mask);
}
