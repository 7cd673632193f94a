#include "decode/code/x86_common.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { IP = 0x7fff0000 };

/* Bytes behind the opcode in all tests of forms. */
static const uint8_t behind[INSN_MAX_SIZE] = { 0x85, 0x92, 0xa3, 0xf4, 0x15, 0x26 };

/* Asserts that the instruction is read as the disassembler reads it. Returns whether it is read at
 * all. */
static bool agrees(const uint8_t *bytes)
{
	struct insn found, expected;

	if (!x86_common_read(bytes, INSN_MAX_SIZE, IP, &found))
		return false;
	if (insn_disassemble(bytes, INSN_MAX_SIZE, IP, 64, &expected))
		fail_msg("%02x %02x %02x %02x is no instruction", bytes[0], bytes[1], bytes[2],
			 bytes[3]);
	if (found.length != expected.length || found.class != expected.class ||
	    found.target != expected.target || found.stops_trace != expected.stops_trace)
		fail_msg("%02x %02x %02x %02x: length %u, not %u; class %u, not %u", bytes[0],
			 bytes[1], bytes[2], bytes[3], found.length, expected.length, found.class,
			 expected.class);
	assert_int_equal(found.ip, IP);
	assert_ptr_equal(found.bytes, bytes);
	return true;
}

/* Every MODRM behind an opcode, with those SIBs that make a difference. */
static unsigned try_operands(const uint8_t *opcode, size_t size)
{
	static const uint8_t sibs[] = { 0x00, 0x25, 0xec };
	uint8_t bytes[INSN_MAX_SIZE];
	unsigned read = 0;

	memcpy(bytes, opcode, size);
	memcpy(bytes + size, behind, sizeof(bytes) - size);
	for (unsigned modrm = 0; modrm < 256; modrm++)
		for (size_t i = 0; i < sizeof(sibs); i++) {
			bytes[size] = (uint8_t)modrm;
			bytes[size + 1] = sibs[i];
			read += agrees(bytes);
		}
	return read;
}

static unsigned try_opcodes(const uint8_t *prefixes, size_t size)
{
	uint8_t bytes[INSN_MAX_SIZE];
	unsigned read = 0;

	memcpy(bytes, prefixes, size);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bytes[size] = (uint8_t)opcode;
		read += try_operands(bytes, size + 1);
		bytes[size] = 0x0f;
		bytes[size + 1] = (uint8_t)opcode;
		read += try_operands(bytes, size + 2);
	}
	return read;
}

static void what_is_read_is_what_the_disassembler_reads(void **state)
{
	static const uint8_t firsts[] = { 0x64, 0x65, 0x66, 0x67, 0x2e, 0xf0, 0xf2, 0xf3 };
	static const uint8_t rexes[] = { 0x40, 0x41, 0x42, 0x44, 0x48, 0x4f };

	assert_true(try_opcodes(rexes, 0) > 50000);
	for (size_t r = 0; r < sizeof(rexes); r++)
		assert_true(try_opcodes(&rexes[r], 1) > 50000);
	for (size_t i = 0; i < sizeof(firsts); i++) {
		assert_int_equal(try_opcodes(&firsts[i], 1) > 0, i < 3);
		for (size_t r = 0; r < sizeof(rexes); r++)
			assert_int_equal(try_opcodes((uint8_t[]){ firsts[i], rexes[r] }, 2) > 0,
					 i < 3);
	}
}

static void branches_lead_both_ways(void **state)
{
	static const uint8_t rows[][INSN_MAX_SIZE] = {
		{ 0x74, 0x80 },          { 0x74, 0x7f }, { 0xeb, 0xfe },
		{ 0xe8, 0, 0, 0, 0x80 }, { 0xe9, 1 },    { 0x0f, 0x84, 0xff, 0xff, 0xff, 0xff },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(agrees(rows[i]));
}

static void what_other_bytes_tell_apart_is_common_too(void **state)
{
	static const uint8_t rows[][INSN_MAX_SIZE] = {
		{ 0xff, 0x25, 1 }, /* jmp *1(%rip) */
		{ 0x41, 0xff, 0xd7 }, { 0xf6, 0xc2, 1 },          { 0xf7, 0xc2, 1, 2, 3, 4 },
		{ 0x41, 0xb8, 1 },    { 0x48, 0xb8, 1, 2, 3, 4 }, { 0x66, 0x90 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(agrees(rows[i]));
	assert_false(agrees((const uint8_t[INSN_MAX_SIZE]){ 0xf6, 0xca, 1 }));
	assert_false(agrees((const uint8_t[INSN_MAX_SIZE]){ 0xff, 0x1e }));
}

static void at_the_end_of_code_the_disassembler_is_asked(void **state)
{
	static const uint8_t nop[INSN_MAX_SIZE] = { 0x90 };
	struct insn insn;

	assert_false(x86_common_read(nop, INSN_MAX_SIZE - 1, IP, &insn));
	assert_true(x86_common_read(nop, INSN_MAX_SIZE, IP, &insn));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_is_what_the_disassembler_reads),
		cmocka_unit_test(branches_lead_both_ways),
		cmocka_unit_test(what_other_bytes_tell_apart_is_common_too),
		cmocka_unit_test(at_the_end_of_code_the_disassembler_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
