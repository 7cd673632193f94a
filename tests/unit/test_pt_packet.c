#include "decode/pt/pt_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/pt_encode.h"

#define ALL_56 (((uint64_t)1 << 56) - 1)

/* Every kind with its smallest and its largest payload. `size` is the encoding's. */
static const struct pt_packet packets[] = {
	{ PT_PAD, 1, false, 0, 0 },
	{ PT_TNT, 1, false, 1, 0 },
	{ PT_TNT, 1, false, 1, 1 },
	{ PT_TNT, 1, false, 2, 2 },
	{ PT_TNT, 1, false, 3, 5 },
	{ PT_TNT, 1, false, 4, 0xe },
	{ PT_TNT, 1, false, 5, 0x1f },
	{ PT_TNT, 1, false, 6, 0 },
	{ PT_TNT, 1, false, 6, 0x3f },
	{ PT_TNT, 8, false, 1, 0 },
	{ PT_TNT, 8, false, 1, 1 },
	{ PT_TNT, 8, false, 6, 0x2a },
	{ PT_TNT, 8, false, 7, 0x55 },
	{ PT_TNT, 8, false, 47, 0 },
	{ PT_TNT, 8, false, 47, 0x7fffffffffff },
	{ PT_TIP, 1, false, 0, 0 },
	{ PT_TIP, 3, false, 1, 0xffff },
	{ PT_TIP, 5, false, 2, 0x81000000 },
	{ PT_TIP, 7, false, 3, 0xffff81000000 },
	{ PT_TIP, 7, false, 4, 0x123456789abc },
	{ PT_TIP, 9, false, 6, 0xffffffff81000000 },
	{ PT_TIP_PGE, 1, false, 0, 0 },
	{ PT_TIP_PGE, 9, false, 6, UINT64_MAX },
	{ PT_TIP_PGD, 1, false, 0, 0 },
	{ PT_TIP_PGD, 7, false, 3, 1 },
	{ PT_FUP, 1, false, 0, 0 },
	{ PT_FUP, 3, false, 1, 0 },
	{ PT_FUP, 9, false, 6, 0x8000000000000000 },
	{ PT_MODE_EXEC, 2, false, 0, 0 },
	{ PT_MODE_EXEC, 2, false, 0, 7 },
	{ PT_MODE_TSX, 2, false, 0, 0 },
	{ PT_MODE_TSX, 2, false, 0, 3 },
	{ PT_PIP, 8, false, 0, 0 },
	{ PT_PIP, 8, true, 0, 0x1aabbcc20 },
	{ PT_PIP, 8, true, 0, 0xfffffffffffe0 },
	{ PT_VMCS, 7, false, 0, 0 },
	{ PT_VMCS, 7, false, 0, 0xffffffffff },
	{ PT_TSC, 8, false, 0, 0 },
	{ PT_TSC, 8, false, 0, ALL_56 },
	{ PT_TMA, 7, false, 0, 0 },
	{ PT_TMA, 7, false, 0x1ff, 0xffff },
	{ PT_MTC, 2, false, 0, 0 },
	{ PT_MTC, 2, false, 0, 0xff },
	{ PT_CBR, 4, false, 0, 1 },
	{ PT_CBR, 4, false, 0, 0xff },
	{ PT_CYC, 1, false, 0, 0 },
	{ PT_CYC, 1, false, 0, 0x1f },
	{ PT_CYC, 2, false, 0, 0x20 },
	{ PT_CYC, 2, false, 0, 0xfff },
	{ PT_CYC, 3, false, 0, 0x1000 },
	{ PT_CYC, 9, false, 0, 0x1fffffffffffffff },
	{ PT_CYC, 10, false, 0, UINT64_MAX },
	{ PT_PSB, 16, false, 0, 0 },
	{ PT_PSBEND, 2, false, 0, 0 },
	{ PT_OVF, 2, false, 0, 0 },
	{ PT_TRACESTOP, 2, false, 0, 0 },
	{ PT_MNT, 11, false, 0, UINT64_MAX },
	{ PT_PTW, 6, false, 4, 0xffffffff },
	{ PT_PTW, 6, true, 4, 0 },
	{ PT_PTW, 10, false, 8, UINT64_MAX },
	{ PT_PTW, 10, true, 8, 1 },
	{ PT_EXSTOP, 2, false, 0, 0 },
	{ PT_EXSTOP, 2, true, 0, 0 },
	{ PT_MWAIT, 10, false, 0, 0x3000000ff },
	{ PT_PWRE, 4, false, 0, 0xff80 },
	{ PT_PWRX, 7, false, 0, 0xfff },
	{ PT_BBP, 3, false, 4, 4 },
	{ PT_BBP, 3, false, 8, 0x1f },
	{ PT_BIP, 5, false, 0, 0xffffffff },
	{ PT_BIP, 5, false, 31, 0 },
	{ PT_BIP, 9, false, 2, UINT64_MAX },
	{ PT_BEP, 2, false, 0, 0 },
	{ PT_BEP, 2, true, 0, 0 },
	{ PT_CFE, 4, false, 0xff, 1 },
	{ PT_CFE, 4, true, 0, 0x1f },
	{ PT_EVD, 11, false, 0, UINT64_MAX },
	{ PT_EVD, 11, false, 0x3f, 1 },
	{ PT_TRIG, 3, true, 0, 0xff },
	{ PT_TRIG, 5, false, 0xffff, 1 },
};

enum { PACKETS = sizeof(packets) / sizeof(packets[0]) };

/* Only a BIP is read inside a block: short TNT has its first byte elsewhere. */
static enum pt_block_context block_of(const struct pt_packet *packet)
{
	if (packet->kind != PT_BIP)
		return PT_NO_BLOCK;
	return packet->size == 9 ? PT_BLOCK_8 : PT_BLOCK_4;
}

/* A copy on the heap of exactly `size` bytes, so that a sanitizer sees any read past them. */
static int read_exactly(const uint8_t *data, size_t size, enum pt_block_context block,
			struct pt_packet *ret)
{
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, data, size);
	r = pt_packet_read(copy, size, block, ret);
	free(copy);
	return r;
}

static void assert_same(const struct pt_packet *got, const struct pt_packet *want)
{
	assert_int_equal(got->kind, want->kind);
	assert_int_equal(got->size, want->size);
	assert_int_equal(got->flag, want->flag);
	assert_int_equal(got->count, want->count);
	assert_int_equal(got->payload, want->payload);
}

static void every_kind_is_in_the_table(void **state)
{
	bool seen[PT_PACKET_KINDS] = { false };

	for (size_t i = 0; i < PACKETS; i++)
		seen[packets[i].kind] = true;
	for (int kind = PT_BAD + 1; kind < PT_PACKET_KINDS; kind++)
		assert_true(seen[kind]);
}

static void encoded_packets_decode_to_themselves(void **state)
{
	for (size_t i = 0; i < PACKETS; i++) {
		struct pt_bytes bytes = { 0 };
		struct pt_packet got;

		pt_put(&bytes, &packets[i]);
		assert_int_equal(bytes.size, packets[i].size);
		assert_int_equal(read_exactly(bytes.data, bytes.size, block_of(&packets[i]), &got),
				 0);
		assert_same(&got, &packets[i]);
		pt_bytes_free(&bytes);
	}
}

static void every_short_prefix_asks_for_more(void **state)
{
	for (size_t i = 0; i < PACKETS; i++) {
		struct pt_bytes bytes = { 0 };
		struct pt_packet got;

		pt_put(&bytes, &packets[i]);
		for (size_t size = 0; size < bytes.size; size++)
			assert_int_equal(
				read_exactly(bytes.data, size, block_of(&packets[i]), &got),
				-PTVM_END);
		pt_bytes_free(&bytes);
	}
}

static void assert_bad(const uint8_t *data, size_t size)
{
	struct pt_packet got;

	assert_int_equal(read_exactly(data, size, PT_NO_BLOCK, &got), -PTVM_BAD_PACKET);
}

static void undefined_first_bytes_are_bad(void **state)
{
	/* low five bits that no packet has, and payload bits of opcodes that have none */
	static const uint8_t bad[] = { 0x05, 0x09, 0x15, 0x39, 0x79, 0xb9, 0xc9, 0xf9, 0xe5 };

	for (size_t i = 0; i < sizeof(bad); i++) {
		uint8_t data[16] = { bad[i] };

		assert_bad(data, sizeof(data));
	}
}

static void undefined_extended_opcodes_are_bad(void **state)
{
	static const uint8_t bad[] = { 0x00, 0x02, 0x52, 0x72, 0xd2, 0xf2, 0x93, 0xff };

	for (size_t i = 0; i < sizeof(bad); i++) {
		uint8_t data[16] = { 2, bad[i] };

		assert_bad(data, sizeof(data));
	}
}

static void reserved_ipbytes_are_bad(void **state)
{
	static const uint8_t opcodes[] = { 0x0d, 0x11, 0x01, 0x1d };

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		uint8_t five[16] = { (uint8_t)(5 << 5 | opcodes[i]) };
		uint8_t seven[16] = { (uint8_t)(7 << 5 | opcodes[i]) };

		assert_bad(five, sizeof(five));
		assert_bad(seven, sizeof(seven));
	}
}

static void reserved_mode_leaves_are_bad(void **state)
{
	for (unsigned leaf = 2; leaf < 8; leaf++) {
		uint8_t data[2] = { 0x99, (uint8_t)(leaf << 5) };

		assert_bad(data, sizeof(data));
	}
}

/* Erratum SKZ84: a corrupted TMA betrays itself only by these bits. */
static void reserved_bits_of_tma_are_bad(void **state)
{
	const uint8_t good[7] = { 2, 0x73, 0x34, 0x12, 0, 0xff, 1 };

	for (unsigned bit = 0; bit < 8; bit++) {
		uint8_t middle[7], top[7];

		memcpy(middle, good, sizeof(good));
		memcpy(top, good, sizeof(good));
		middle[4] |= (uint8_t)(1 << bit);
		top[6] |= (uint8_t)(1 << bit);
		assert_bad(middle, sizeof(middle));
		if (bit)
			assert_bad(top, sizeof(top));
	}
}

static void long_tnt_without_branches_is_bad(void **state)
{
	const uint8_t no_stop[8] = { 2, 0xa3 };
	const uint8_t stop_only[8] = { 2, 0xa3, 1 };

	assert_bad(no_stop, sizeof(no_stop));
	assert_bad(stop_only, sizeof(stop_only));
}

static void broken_psb_and_mnt_are_bad(void **state)
{
	uint8_t psb[16], mnt[11] = { 2, 0xc3, 0x89 };

	for (size_t i = 0; i < sizeof(psb); i++)
		psb[i] = i & 1 ? 0x82 : 2;
	psb[15] = 0x83;
	assert_bad(psb, sizeof(psb));
	assert_bad(mnt, sizeof(mnt));
}

static void cyc_without_end_is_bad(void **state)
{
	uint8_t data[PT_PACKET_MAX + 8];

	memset(data, 0xff, sizeof(data));
	assert_bad(data, sizeof(data));
}

static void cyc_may_be_longer_than_needed(void **state)
{
	for (unsigned size = 1; size <= 9; size++) {
		struct pt_bytes bytes = { 0 };
		struct pt_packet got;

		pt_put_cyc_padded(&bytes, 7, size);
		assert_int_equal(read_exactly(bytes.data, bytes.size, PT_NO_BLOCK, &got), 0);
		assert_same(&got, &(struct pt_packet){ PT_CYC, (uint8_t)size, false, 0, 7 });
		pt_bytes_free(&bytes);
	}
}

/* The same byte is a block item inside a block, and a TNT outside. */
static void the_block_decides_between_bip_and_tnt(void **state)
{
	const uint8_t data[] = { 0x14, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct pt_packet got;

	assert_int_equal(read_exactly(data, sizeof(data), PT_NO_BLOCK, &got), 0);
	assert_same(&got, &(struct pt_packet){ PT_TNT, 1, false, 3, 2 });
	assert_int_equal(read_exactly(data, sizeof(data), PT_BLOCK_4, &got), 0);
	assert_same(&got, &(struct pt_packet){ PT_BIP, 5, false, 2, 0x04030201 });
	assert_int_equal(read_exactly(data, sizeof(data), PT_BLOCK_8, &got), 0);
	assert_same(&got, &(struct pt_packet){ PT_BIP, 9, false, 2, 0x0807060504030201 });
}

static void blocks_begin_at_bbp_and_end_at_bep_or_overflow(void **state)
{
	const struct pt_packet bbp4 = { PT_BBP, 3, false, 4, 4 }, bbp8 = { PT_BBP, 3, false, 8, 4 };
	const struct pt_packet bip = { PT_BIP, 5, false, 0, 0 }, mtc = { PT_MTC, 2, false, 0, 0 };
	static const enum pt_packet_kind ends[] = { PT_BEP, PT_OVF, PT_PSB };

	assert_int_equal(pt_block_after(PT_NO_BLOCK, &bbp4), PT_BLOCK_4);
	assert_int_equal(pt_block_after(PT_NO_BLOCK, &bbp8), PT_BLOCK_8);
	assert_int_equal(pt_block_after(PT_BLOCK_8, &bip), PT_BLOCK_8);
	assert_int_equal(pt_block_after(PT_BLOCK_4, &mtc), PT_BLOCK_4);
	assert_int_equal(pt_block_after(PT_NO_BLOCK, &mtc), PT_NO_BLOCK);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pt_block_after(PT_BLOCK_4, &(struct pt_packet){ .kind = ends[i] }),
				 PT_NO_BLOCK);
}

static void psb_is_found_at_any_phase(void **state)
{
	for (size_t before = 0; before < 5; before++) {
		struct pt_bytes bytes = { 0 };

		pt_put_bytes(&bytes, "\x02\x82\x02\x02\x82", before);
		pt_put_psb(&bytes);
		assert_ptr_equal(pt_psb_find(bytes.data, bytes.data + bytes.size),
				 bytes.data + (before == 2 ? 0 : before));
		assert_null(pt_psb_find(bytes.data + bytes.size - 15, bytes.data + bytes.size));
		pt_bytes_free(&bytes);
	}
}

/* Each form gives back the IP whatever came before; the shortest is never longer than a full one.
 */
static void compressed_ips_come_back(void **state)
{
	static const uint64_t ips[] = { 0xffffffff81000000, 0xffffffff81001234, 0xffffffffc0000010,
					0xffff888000000000, 0x400000,           0x7fff00000000,
					0x1234567812345678, 0x1234567812345679, 0 };
	enum { IPS = sizeof(ips) / sizeof(ips[0]) };

	for (size_t i = 0; i < IPS * IPS; i++) {
		struct pt_bytes bytes = { .last_ip = ips[i / IPS] };
		struct pt_last_ip last = { ips[i / IPS] };
		struct pt_packet got;

		pt_put_ip(&bytes, PT_TIP, ips[i % IPS], PT_IP_AUTO);
		assert_int_equal(read_exactly(bytes.data, bytes.size, PT_NO_BLOCK, &got), 0);
		assert_int_equal(pt_ip_update(&last, got.count, got.payload), ips[i % IPS]);
		assert_int_equal(last.ip, bytes.last_ip);
		pt_bytes_free(&bytes);
	}
}

static void suppressed_ips_leave_the_last_one(void **state)
{
	struct pt_last_ip last = { 0xffffffff81000000 };

	assert_int_equal(pt_ip_update(&last, 0, 0), 0xffffffff81000000);
	assert_int_equal(last.ip, 0xffffffff81000000);
}

static void any_bytes_make_a_packet_or_a_reason(void **state)
{
	uint64_t random = 1;

	for (int i = 0; i < 200000; i++) {
		uint8_t data[PT_PACKET_MAX];
		struct pt_packet got;
		int r;

		for (size_t k = 0; k < sizeof(data); k++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			data[k] = (uint8_t)(random >> 56);
		}
		data[0] = i & 1 ? 2 : data[0];
		r = pt_packet_read(data, sizeof(data), (enum pt_block_context)(i & 2 ? 4 : 0),
				   &got);
		assert_true(r == 0 || r == -PTVM_BAD_PACKET || r == -PTVM_END);
		if (!r) {
			assert_in_range(got.size, 1, PT_PACKET_MAX);
			assert_in_range(got.kind, PT_PAD, PT_PACKET_KINDS - 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_in_the_table),
		cmocka_unit_test(encoded_packets_decode_to_themselves),
		cmocka_unit_test(every_short_prefix_asks_for_more),
		cmocka_unit_test(undefined_first_bytes_are_bad),
		cmocka_unit_test(undefined_extended_opcodes_are_bad),
		cmocka_unit_test(reserved_ipbytes_are_bad),
		cmocka_unit_test(reserved_mode_leaves_are_bad),
		cmocka_unit_test(reserved_bits_of_tma_are_bad),
		cmocka_unit_test(long_tnt_without_branches_is_bad),
		cmocka_unit_test(broken_psb_and_mnt_are_bad),
		cmocka_unit_test(cyc_without_end_is_bad),
		cmocka_unit_test(cyc_may_be_longer_than_needed),
		cmocka_unit_test(the_block_decides_between_bip_and_tnt),
		cmocka_unit_test(blocks_begin_at_bbp_and_end_at_bep_or_overflow),
		cmocka_unit_test(psb_is_found_at_any_phase),
		cmocka_unit_test(compressed_ips_come_back),
		cmocka_unit_test(suppressed_ips_leave_the_last_one),
		cmocka_unit_test(any_bytes_make_a_packet_or_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
