#include "decode/print/print_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"
#include "tests/flow_bench.h"
#include "tests/print_bench.h"

/* Lines of instructions; the host has nop; nop; jmp *%rax at the kernel's base. */

enum { NOPS = 2 };

static const uint64_t kernel = 0xffffffff81000000;

static struct print_bench *bench_with(uint32_t fields)
{
	static const uint8_t bytes[] = { 0x90, 0x90, 0xff, 0xe0 };
	struct print_bench *bench = print_bench_new(fields, "i");

	assert_true(bench_add_code(bench->machines.host, kernel, bytes, sizeof(bytes)));
	assert_true(bench_add_function(bench->machines.host, kernel));
	return bench;
}

static struct block *block_of(struct print_bench *bench)
{
	struct block *block =
		block_get(&bench->code, print_space(&bench->printer, kernel), kernel, 0);

	assert_non_null(block);
	assert_int_equal(block->count, NOPS + 1);
	return block;
}

static void prepared_lines_stand_behind_the_prefix(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CPU | FIELD_IP);

	print_lines(&bench->printer, block_of(bench), 1, 3);
	print_lines(&bench->printer, block_of(bench), 0, 1);
	assert_int_equal(bench->printer.lines, 3);
	print_bench_expect(bench, "[001]  ffffffff81000001\n[001]  ffffffff81000002\n"
				  "[001]  ffffffff81000000\n");
	print_bench_free(bench);
}

static void without_a_prefix_they_are_copied_at_once(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);

	print_lines(&bench->printer, block_of(bench), 1, 3);
	print_lines(&bench->printer, block_of(bench), 1, 2);
	print_bench_expect(bench, " ffffffff81000001\n ffffffff81000002\n ffffffff81000001\n");
	print_bench_free(bench);
}

static void no_lines_are_none(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);

	bench->printer.skip = 1;
	print_lines(&bench->printer, block_of(bench), 2, 2);
	assert_int_equal(bench->printer.lines, 0);
	assert_int_equal(bench->printer.skip, 1);
	assert_int_equal(bench->printer.out.size, 0);
	print_bench_free(bench);
}

static void what_is_not_wanted_is_left_out(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);

	assert_true(print_begin(&bench->printer));
	assert_false(bench->printer.has_left_out);
	bench->config.guest_only = true;
	prefix_outdate(&bench->printer);
	assert_false(print_begin(&bench->printer));
	print_lines(&bench->printer, block_of(bench), 0, 2);
	assert_true(bench->printer.has_left_out);
	assert_int_equal(bench->printer.lines, 1);
	assert_int_equal(bench->printer.out.size, 0);
	print_bench_free(bench);
}

static void events_at_first_may_be_skipped(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);

	bench->printer.skip = 2;
	assert_false(print_begin(&bench->printer));
	assert_false(print_begin(&bench->printer));
	assert_true(print_begin(&bench->printer));
	assert_false(bench->printer.has_left_out);
	assert_int_equal(bench->printer.lines, 1);
	print_bench_free(bench);
}

static void expect_event(uint32_t fields, uint64_t period, const char *expected)
{
	const struct print_config config = { .fields = fields, .modifier = ":k", .name_width = 10 };
	struct text text = { 0 };

	print_add_event(&config, &text, "branches", period);
	text_putc(&text, 0);
	assert_string_equal(text.data, expected);
	text_free(&text);
}

static void an_event_has_a_period_and_a_name(void **state)
{
	expect_event(FIELD_PERIOD | FIELD_EVENT, 12, "        12 branches:k: ");
	expect_event(FIELD_EVENT, 12, "branches:k: ");
	expect_event(FIELD_PERIOD, 12, "        12 ");
	expect_event(FIELD_PERIOD | FIELD_EVENT, 0, "branches:k: ");
	expect_event(FIELD_IP, 12, "");
}

static void an_address_has_a_space_of_its_side(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);

	bench->machines.one_for_all = false;
	assert_null(print_space(&bench->printer, 0));
	assert_ptr_equal(print_space(&bench->printer, kernel)->machine, bench->machines.host);
	assert_int_equal(print_space(&bench->printer, kernel)->pid, -1);
	assert_int_equal(print_space(&bench->printer, 0x1000)->pid, 7);
	bench->printer.context.bits = 32;
	assert_int_equal(print_space(&bench->printer, 0x1000)->bits, 32);
	bench->printer.context.nr = true;
	assert_null(print_space(&bench->printer, 0x1000)->machine);
	print_bench_free(bench);
}

static void an_address_is_a_number_and_a_name(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_SYM | FIELD_SYMOFF);

	print_add_address(&bench->printer, print_space(&bench->printer, kernel), kernel + 3);
	print_add_address(&bench->printer, NULL, 0x12);
	print_bench_expect(bench, " ffffffff81000003 function+0x3               12 [unknown]");
	print_bench_free(bench);
}

static void an_instruction_has_what_cannot_be_prepared(void **state)
{
	struct print_bench *bench = bench_with(FIELD_EVENT | FIELD_PERIOD | FIELD_IP | FIELD_INSN |
					       FIELD_INSNLEN | FIELD_FLAGS);

	bench->config.name_width = 16;
	bench->config.insn_addr = true;
	print_insn(&bench->printer, block_of(bench), 2, 17, SAMPLE_BRANCH, 0x4711);
	print_bench_expect(bench,
			   "        17   instructions:k:   jmp                               4711 "
			   "ffffffff81000002 ilen: 2 insn: ff e0\n");
	assert_int_equal(bench->printer.lines, 1);
	print_bench_free(bench);
}

static void an_instruction_has_the_cycles_since_the_last_one(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_IPC);

	bench->printer.ipc.in_line = true;
	bench->printer.ipc.total.insns = 6;
	bench->printer.ipc.total.cycles = 3;
	print_insn(&bench->printer, block_of(bench), 0, 1, 0, 0);
	print_insn(&bench->printer, block_of(bench), 1, 1, 0, 0);
	print_bench_expect(bench, " ffffffff81000000 \t IPC: 2.00 (6/3) \n ffffffff81000001\n");
	print_bench_free(bench);
}

static void an_instruction_without_a_block_is_the_one_at_its_address(void **state)
{
	struct print_bench *bench =
		bench_with(FIELD_EVENT | FIELD_IP | FIELD_SYM | FIELD_INSNLEN | FIELD_DISASM);

	print_bare_insn(&bench->printer, kernel, 0, 0);
	print_bench_expect(bench, "instructions:k:  ffffffff81000000 function ilen: 1 nop\n");
	print_bare_insn(&bench->printer, kernel - 1, 0, 0);
	print_bench_expect(bench, "instructions:k:  ffffffff80ffffff [unknown] ilen: 0\n");
	print_bare_insn(&bench->printer, 0, 0, 0);
	print_bench_expect(bench, "instructions:k:                 0 [unknown] ilen: 0\n");
	bench->config.fields = bench->config.style.fields = FIELD_PERIOD | FIELD_IP;
	print_bare_insn(&bench->printer, kernel, 0, 0);
	print_bench_expect(bench, "         1  ffffffff81000000\n");
	bench->printer.skip = 1;
	print_bare_insn(&bench->printer, kernel, 0, 0);
	print_bench_expect(bench, "");
	print_bench_free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepared_lines_stand_behind_the_prefix),
		cmocka_unit_test(without_a_prefix_they_are_copied_at_once),
		cmocka_unit_test(no_lines_are_none),
		cmocka_unit_test(what_is_not_wanted_is_left_out),
		cmocka_unit_test(events_at_first_may_be_skipped),
		cmocka_unit_test(an_event_has_a_period_and_a_name),
		cmocka_unit_test(an_address_has_a_space_of_its_side),
		cmocka_unit_test(an_address_is_a_number_and_a_name),
		cmocka_unit_test(an_instruction_has_what_cannot_be_prepared),
		cmocka_unit_test(an_instruction_has_the_cycles_since_the_last_one),
		cmocka_unit_test(an_instruction_without_a_block_is_the_one_at_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
