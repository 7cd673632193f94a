#include "decode/code/x86_insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

struct row {
	const char *name;
	unsigned bits, length;
	enum insn_class class;
	uint64_t target; /* from 0x1000 */
	uint8_t bytes[INSN_MAX_SIZE];
};

static void read_row(const struct row *row, struct insn *ret)
{
	if (insn_read(row->bytes, sizeof(row->bytes), 0x1000, row->bits, ret))
		fail_msg("%s is not read", row->name);
}

static void every_class_is_recognized(void **state)
{
	static const struct row rows[] = {
		{ "nop", 64, 1, INSN_PLAIN, 0, { 0x90 } },
		{ "je", 64, 2, INSN_JCC, 0x1004, { 0x74, 0x02 } },
		{ "jne near", 64, 6, INSN_JCC, 0x1106, { 0x0f, 0x85, 0, 1 } },
		{ "loop", 64, 2, INSN_JCC, 0xff2, { 0xe2, 0xf0 } },
		{ "jrcxz", 64, 2, INSN_JCC, 0x1002, { 0xe3, 0 } },
		{ "jmp", 64, 2, INSN_JMP, 0x1000, { 0xeb, 0xfe } },
		{ "jmp near", 64, 5, INSN_JMP, 0x1006, { 0xe9, 1 } },
		{ "call", 64, 5, INSN_CALL, 0x1015, { 0xe8, 0x10 } },
		{ "call back", 64, 5, INSN_CALL, 0x1004, { 0xe8, 0xff, 0xff, 0xff, 0xff } },
		{ "call *rax", 64, 2, INSN_CALL_INDIRECT, 0, { 0xff, 0xd0 } },
		{ "jmp *rax", 64, 2, INSN_JMP_INDIRECT, 0, { 0xff, 0xe0 } },
		{ "notrack jmp", 64, 3, INSN_JMP_INDIRECT, 0, { 0x3e, 0xff, 0xe0 } },
		{ "ret", 64, 1, INSN_RET, 0, { 0xc3 } },
		{ "ret n", 64, 3, INSN_RET, 0, { 0xc2, 8 } },
		{ "rep ret", 64, 2, INSN_RET, 0, { 0xf3, 0xc3 } },
		{ "lret", 64, 1, INSN_FAR_RET, 0, { 0xcb } },
		{ "ljmp *", 64, 2, INSN_FAR_JMP, 0, { 0xff, 0x28 } },
		{ "lcall *", 64, 2, INSN_FAR_CALL, 0, { 0xff, 0x18 } },
		{ "lcall", 32, 7, INSN_FAR_CALL, 0, { 0x9a } },
		{ "int3", 64, 1, INSN_INT, 0, { 0xcc } },
		{ "int 80", 64, 2, INSN_INT, 0, { 0xcd, 0x80 } },
		{ "int1", 64, 1, INSN_INT, 0, { 0xf1 } },
		{ "into", 32, 1, INSN_INT, 0, { 0xce } },
		{ "iretq", 64, 2, INSN_IRET, 0, { 0x48, 0xcf } },
		{ "syscall", 64, 2, INSN_SYSCALL, 0, { 0x0f, 0x05 } },
		{ "sysenter", 32, 2, INSN_SYSCALL, 0, { 0x0f, 0x34 } },
		{ "sysretq", 64, 3, INSN_SYSRET, 0, { 0x48, 0x0f, 0x07 } },
		{ "sysexit", 32, 2, INSN_SYSRET, 0, { 0x0f, 0x35 } },
		{ "vmlaunch", 64, 3, INSN_VMENTRY, 0, { 0x0f, 0x01, 0xc2 } },
		{ "vmresume", 64, 3, INSN_VMENTRY, 0, { 0x0f, 0x01, 0xc3 } },
		{ "ud0", 64, 3, INSN_UD, 0, { 0x0f, 0xff, 0xc0 } },
		{ "ud1", 64, 3, INSN_UD, 0, { 0x0f, 0xb9, 0xcc } },
		{ "ud2", 64, 2, INSN_UD, 0, { 0x0f, 0x0b } },
		{ "vmcall", 64, 3, INSN_PLAIN, 0, { 0x0f, 0x01, 0xc1 } },
		{ "xbegin", 64, 6, INSN_PLAIN, 0, { 0xc7, 0xf8 } },
		{ "hlt", 64, 1, INSN_PLAIN, 0, { 0xf4 } },
		{ "rsm", 64, 2, INSN_FAR_RET, 0, { 0x0f, 0xaa } },
		{ "movabs", 64, 10, INSN_PLAIN, 0, { 0x48, 0xb8 } },
		{ "vzeroupper", 64, 3, INSN_PLAIN, 0, { 0xc5, 0xf8, 0x77 } },
	};
	struct insn insn;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_row(&rows[i], &insn);
		if (insn.class != rows[i].class || insn.length != rows[i].length ||
		    insn.target != rows[i].target)
			fail_msg("%s: class %u, length %u, target %llx", rows[i].name, insn.class,
				 insn.length, (unsigned long long)insn.target);
	}
}

static void the_mode_decides_what_bytes_mean(void **state)
{
	static const struct row inc = { "40", 32, 1, INSN_PLAIN, 0, { 0x40, 0xcb } };
	static const struct row rex = { "40 lret", 64, 2, INSN_FAR_RET, 0, { 0x40, 0xcb } };
	static const struct row jmp = { "jmp", 16, 3, INSN_JMP, 0x1103, { 0xe9, 0, 1 } };
	struct insn insn;

	read_row(&inc, &insn);
	assert_int_equal(insn.length, 1);
	read_row(&rex, &insn);
	assert_int_equal(insn.length, 2);
	assert_int_equal(insn.class, INSN_FAR_RET);
	read_row(&jmp, &insn);
	assert_int_equal(insn.length, 3);
	assert_int_equal(insn.target, 0x1103);
}

static void targets_wrap_where_the_mode_ends(void **state)
{
	const uint8_t near16[] = { 0xe9, 0x10, 0x00 }, near32[] = { 0xe9, 0x10, 0, 0, 0 };
	struct insn insn;

	assert_int_equal(insn_read(near16, sizeof(near16), 0xfffd, 16, &insn), 0);
	assert_int_equal(insn.target, 0x10);
	assert_int_equal(insn_read(near32, sizeof(near32), 0xfffffffb, 32, &insn), 0);
	assert_int_equal(insn.target, 0x10);
	assert_int_equal(insn_read(near32, sizeof(near32), (uint64_t)-5, 64, &insn), 0);
	assert_int_equal(insn.target, 0x10);
}

static void what_can_end_tracing_is_marked(void **state)
{
	const uint8_t cr3[] = { 0x0f, 0x22, 0xd8 }, cr4[] = { 0x0f, 0x22, 0xe0 };
	const uint8_t wrmsr[] = { 0x0f, 0x30 }, rdmsr[] = { 0x0f, 0x32 };
	struct insn insn;

	assert_int_equal(insn_read(cr3, sizeof(cr3), 0, 64, &insn), 0);
	assert_true(insn.stops_trace);
	assert_int_equal(insn_read(cr4, sizeof(cr4), 0, 64, &insn), 0);
	assert_false(insn.stops_trace);
	assert_int_equal(insn_read(wrmsr, sizeof(wrmsr), 0, 64, &insn), 0);
	assert_true(insn.stops_trace);
	assert_int_equal(insn_read(rdmsr, sizeof(rdmsr), 0, 64, &insn), 0);
	assert_false(insn.stops_trace);
}

static void every_short_prefix_asks_for_more(void **state)
{
	const uint8_t movabs[] = { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct insn insn;

	for (size_t size = 0; size < sizeof(movabs); size++)
		assert_int_equal(insn_read(movabs, size, 0, 64, &insn), -PTVM_END);
	assert_int_equal(insn_read(movabs, sizeof(movabs), 0, 64, &insn), 0);
	assert_ptr_equal(insn.bytes, movabs);
}

static void what_is_no_instruction_is_refused(void **state)
{
	const uint8_t push_es[] = { 0x06, 0, 0 };
	uint8_t prefixes[32];
	struct insn insn;

	memset(prefixes, 0x66, sizeof(prefixes));
	assert_int_equal(insn_read(push_es, sizeof(push_es), 0, 64, &insn), -PTVM_BAD_INPUT);
	assert_int_equal(insn_read(push_es, sizeof(push_es), 0, 32, &insn), 0);
	assert_int_equal(insn_read(prefixes, sizeof(prefixes), 0, 64, &insn), -PTVM_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_class_is_recognized),
		cmocka_unit_test(the_mode_decides_what_bytes_mean),
		cmocka_unit_test(targets_wrap_where_the_mode_ends),
		cmocka_unit_test(what_can_end_tracing_is_marked),
		cmocka_unit_test(every_short_prefix_asks_for_more),
		cmocka_unit_test(what_is_no_instruction_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
