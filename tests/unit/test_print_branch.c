#include "decode/print/print_branch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/print_line.h"
#include "decode/print/sample_flags.h"
#include "tests/flow_bench.h"
#include "tests/print_bench.h"

/* One branch after the other, in a kernel with two functions:
 *	00 call 10; 05 jmp *%rax	10 ret */

enum {
	CALLEE = 0x10,
	CALL = SAMPLE_BRANCH | SAMPLE_CALL,
	RETURN = SAMPLE_BRANCH | SAMPLE_RETURN,
	JUMP = SAMPLE_BRANCH,
	BEGIN = SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN,
	END = SAMPLE_BRANCH | SAMPLE_TRACE_END,
	SYSCALL = SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_SYSCALL,
};

static const uint64_t kernel = 0xffffffff81000000;

static struct print_bench *bench_with(uint32_t fields, const char *letters)
{
	static const uint8_t bytes[] = { 0xe8, 0x0b, 0, 0, 0, 0xff, 0xe0, [CALLEE] = 0xc3 };
	struct print_bench *bench = print_bench_new(fields, letters);

	assert_true(bench_add_code(bench->machines.host, kernel, bytes, sizeof(bytes)));
	assert_true(bench_add_function(bench->machines.host, kernel));
	assert_true(bench_add_function(bench->machines.host, kernel + CALLEE));
	return bench;
}

/* call; ret */
static struct block *block_of(struct print_bench *bench)
{
	struct block *block =
		block_get(&bench->code, print_space(&bench->printer, kernel), kernel, 0);

	assert_non_null(block);
	assert_int_equal(block->count, 2);
	return block;
}

static void branch(struct print_bench *bench, uint64_t from, uint32_t flags, uint64_t to)
{
	print_branch_from(&bench->printer, from, flags);
	print_branch_to(&bench->printer, to);
	print_branch_settle(&bench->printer);
}

static void a_line_is_open_until_the_flow_arrives(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_SYM | FIELD_ADDR, "b");
	struct block *block = block_of(bench);

	print_branch_from(&bench->printer, 0x1234, JUMP);
	assert_true(bench->printer.line.open);
	print_branch_to(&bench->printer, kernel);
	assert_true(bench->printer.line.open);
	print_branch_arrived(&bench->printer, block);
	assert_false(bench->printer.line.open);
	print_branch_arrived(&bench->printer, block);
	print_branch_settle(&bench->printer);
	print_bench_expect(bench, "             1234 [unknown] => ffffffff81000000 function\n");
	print_bench_free(bench);
}

static void arriving_elsewhere_the_target_is_what_was_told(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	print_branch_from(&bench->printer, 0x1234, JUMP);
	print_branch_to(&bench->printer, 0x5678);
	print_branch_arrived(&bench->printer, block_of(bench));
	print_bench_expect(bench, "             1234 =>             5678\n");
	print_bench_free(bench);
}

static void the_target_may_be_told_later_or_never(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	print_branch_from(&bench->printer, 0x1234, JUMP);
	print_branch_to(&bench->printer, 0);
	print_branch_to(&bench->printer, 0x5678);
	print_branch_from(&bench->printer, 0x1234, END);
	print_branch_to(&bench->printer, 0);
	print_branch_arrived(&bench->printer, block_of(bench));
	print_bench_expect(bench, "             1234 =>             5678\n"
				  "             1234 =>                0\n");
	print_bench_free(bench);
}

static void the_next_branch_completes_the_line(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	print_branch_from(&bench->printer, 0x1000, JUMP);
	print_branch_to(&bench->printer, 0x2000);
	print_branch_from(&bench->printer, 0x3000, JUMP);
	print_branch_to(&bench->printer, 0x4000);
	print_branch_settle(&bench->printer);
	print_bench_expect(bench, "             1000 =>             2000\n"
				  "             3000 =>             4000\n");
	assert_int_equal(bench->printer.lines, 2);
	print_bench_free(bench);
}

static void a_branch_within_a_block_has_its_names_and_instruction(void **state)
{
	struct print_bench *bench = bench_with(
		FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_ADDR | FIELD_INSN | FIELD_INSNLEN, "b");
	struct block *block = block_of(bench);

	print_branch_within(&bench->printer, block, 0, CALL);
	print_bench_expect(bench, " ffffffff81000000 function+0x0 => ffffffff81000010 function+0x0 "
				  "ilen: 5 insn: e8 0b 00 00 00\n");
	print_bench_free(bench);
}

static void branches_within_a_block_are_printed_together(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CPU | FIELD_IP | FIELD_ADDR, "b");
	struct block *block = block_of(bench);

	assert_true(print_branches_within(&bench->printer, block, 0));
	assert_int_equal(bench->printer.lines, 0);
	assert_true(print_branches_within(&bench->printer, block, 1));
	assert_true(print_branches_within(&bench->printer, block, 2));
	print_bench_expect(bench, "[001]  ffffffff81000000 => ffffffff81000010\n"
				  "[001]  ffffffff81000000 => ffffffff81000010\n");
	assert_int_equal(bench->printer.lines, 2);
	print_bench_free(bench);
}

static void lines_that_are_left_out_are_noted(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");
	struct block *block = block_of(bench);

	bench->config.guest_only = true;
	assert_true(print_branches_within(&bench->printer, block, 1));
	assert_true(bench->printer.has_left_out);
	bench->printer.has_left_out = false;
	assert_true(print_branch_between(&bench->printer, block, 1, block));
	assert_true(bench->printer.has_left_out);
	print_bench_expect(bench, "");
	print_bench_free(bench);
}

static void a_branch_between_blocks_is_a_line(void **state)
{
	struct print_bench *bench =
		bench_with(FIELD_CPU | FIELD_FLAGS | FIELD_IP | FIELD_ADDR | FIELD_INSN, "b");
	struct block *block = block_of(bench);

	assert_true(print_branch_between(&bench->printer, block, 1, block));
	print_branch_from_insn(&bench->printer, block, 1, RETURN);
	print_branch_to(&bench->printer, kernel);
	print_branch_arrived(&bench->printer, block);
	print_bench_expect(bench, "[001]   return                 ffffffff81000010 => "
				  "ffffffff81000000 insn: c3\n"
				  "[001]   return                 ffffffff81000010 => "
				  "ffffffff81000000 insn: c3\n");
	print_bench_free(bench);
}

static void a_branch_without_an_instruction_shows_what_it_interrupts(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_INSNLEN | FIELD_INSN, "b");

	print_branch_from_insn(&bench->printer, block_of(bench), 0, CALL);
	print_branch_settle(&bench->printer);
	branch(bench, 0, BEGIN, kernel);
	branch(bench, kernel, SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC, 0x1000);
	print_bench_expect(bench, " ffffffff81000000 ilen: 5 insn: e8 0b 00 00 00\n"
				  "                0 ilen: 0\n"
				  " ffffffff81000000 ilen: 5 insn: e8 0b 00 00 00\n");
	print_bench_free(bench);
}

static uint64_t lines_of(const char *letters, uint32_t flags)
{
	struct print_bench *bench = bench_with(FIELD_IP, letters);
	uint64_t lines;

	branch(bench, 0x1000, flags, 0x2000);
	lines = bench->printer.lines;
	assert_int_equal(bench->printer.out.size > 0, lines);
	print_bench_free(bench);
	return lines;
}

static void letters_let_calls_and_returns_through(void **state)
{
	static const struct {
		const char *letters;
		uint64_t call, ret, jump, begin, end, interrupt;
	} expected[] = {
		{ "b", 1, 1, 1, 1, 1, 1 },  { "c", 1, 0, 0, 0, 1, 1 }, { "r", 0, 1, 0, 1, 0, 0 },
		{ "cr", 1, 1, 0, 1, 1, 1 }, { "e", 0, 0, 0, 0, 0, 0 }, { "bc", 1, 0, 0, 0, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const char *letters = expected[i].letters;

		assert_int_equal(lines_of(letters, CALL), expected[i].call);
		assert_int_equal(lines_of(letters, RETURN), expected[i].ret);
		assert_int_equal(lines_of(letters, JUMP), expected[i].jump);
		assert_int_equal(lines_of(letters, BEGIN), expected[i].begin);
		assert_int_equal(lines_of(letters, END), expected[i].end);
		assert_int_equal(lines_of(letters, SAMPLE_BRANCH | SAMPLE_ASYNC),
				 expected[i].interrupt);
	}
}

static void each_kind_of_branch_has_its_flags(void **state)
{
	struct print_bench *bench = bench_with(FIELD_FLAGS, "b");
	struct text expected = { 0 };

	for (unsigned twice = 0; twice < 2; twice++)
		for (uint32_t i = 0; i < BRANCH_LEADS + 3; i++) { /* more than are kept */
			branch(bench, 0x1000, SAMPLE_BRANCH | i << 1, 0x2000);
			sample_flags_text(&expected, SAMPLE_BRANCH | i << 1);
			text_putc(&expected, '\n');
		}
	text_putc(&expected, 0);
	print_bench_expect(bench, expected.data);
	text_free(&expected);
	print_bench_free(bench);
}

static void a_branch_is_an_event_of_period_1(void **state)
{
	struct print_bench *bench = bench_with(FIELD_EVENT | FIELD_PERIOD | FIELD_IP, "b");

	for (unsigned i = 0; i < 2; i++)
		branch(bench, 0x1000, JUMP, 0x2000);
	print_bench_expect(bench, "         1   branches:k:              1000\n"
				  "         1   branches:k:              1000\n");
	print_bench_free(bench);
}

static void calls_are_indented_by_their_depth(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT, "cr");
	struct block *block = block_of(bench);

	branch(bench, kernel + 5, JUMP, kernel);
	print_branch_within(&bench->printer, block, 0, CALL);
	branch(bench, 0x1000, SYSCALL, 0x2000);
	print_branch_from_insn(&bench->printer, block, 1, RETURN);
	print_branch_to(&bench->printer, kernel + 5);
	print_branch_settle(&bench->printer);
	print_bench_expect(bench, "    function                    \n"
				  "                    2000        \n"
				  "    function                    \n");
	print_bench_free(bench);
}

static void the_column_of_calls_grows_at_once(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT | FIELD_INSNLEN, "c");

	for (unsigned i = 0; i < 10; i++)
		branch(bench, 0x1000 + i, CALL, 0x2000);
	assert_int_equal(bench->printer.indent_width, 64);
	print_bench_free(bench);
}

/* The width of the column after a call to the named function, so deep, where it was `before`. */
static unsigned width_at(unsigned depth, unsigned before)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT, "c");
	unsigned width;

	for (unsigned i = 0; i < depth; i++)
		branch(bench, 0x1000 + i, CALL, kernel);
	bench->printer.indent_width = before;
	branch(bench, 0, BEGIN | SAMPLE_CALL, kernel);
	width = bench->printer.indent_width;
	print_bench_free(bench);
	return width;
}

static void the_column_of_calls_seldom_changes(void **state)
{
	const unsigned one = width_at(1, 0);

	assert_int_equal(one, 32);
	assert_int_equal(width_at(4, 0), 32); /* 28 characters, and 4 more */
	assert_int_equal(width_at(5, 0), 64);
	assert_int_equal(width_at(5, 32), 32); /* it is just full */
	assert_int_equal(width_at(6, 32), 64);
	assert_int_equal(width_at(1, 64), 64);
	assert_int_equal(width_at(1, 96), 32); /* far too much */
}

static void the_dso_stands_before_indented_calls(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT | FIELD_DSO, "c");

	bench->config.dso_width = 12;
	branch(bench, 0x1000, CALL, 0x2000);
	print_bench_expect(bench, "([unknown]   )\t                2000            \n");
	print_bench_free(bench);
}

static void what_is_no_call_has_no_name_among_calls(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT, "b");

	branch(bench, kernel, JUMP, kernel + CALLEE);
	print_bench_expect(bench, "\n");
	print_bench_free(bench);
}

static void an_address_outside_of_the_trace_has_no_name(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT, "cr");

	branch(bench, 0x1000, CALL, 0);
	branch(bench, 0, BEGIN, kernel);
	branch(bench, kernel, END, 0);
	print_bench_expect(bench, "\n"
				  "function                        \n"
				  "function                        \n");
	print_bench_free(bench);
}

static void depth_is_followed_where_no_line_is_wanted(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT, "r");

	branch(bench, 0x1000, CALL, 0x2000);
	assert_int_equal(bench->printer.out.size, 0);
	branch(bench, kernel, CALL, 0x3000);
	branch(bench, kernel + 5, RETURN, kernel);
	assert_int_equal(bench->printer.lines, 1);
	assert_int_equal(strspn(bench->printer.out.data, " "), 8);
	print_bench_free(bench);
}

static void a_branch_has_the_cycles_since_the_last_one(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_IPC, "b");

	bench->printer.ipc.in_line = true;
	bench->printer.ipc.total.insns = 6;
	bench->printer.ipc.total.cycles = 3;
	branch(bench, 0x1000, JUMP, 0x2000);
	branch(bench, 0x2000, JUMP, 0x3000);
	print_bench_expect(bench, "             1000 \t IPC: 2.00 (6/3) \n             2000\n");
	print_bench_free(bench);
}

static void a_branch_between_host_and_guest_is_two_lines(void **state)
{
	struct print_bench *bench = bench_with(FIELD_NR | FIELD_IP | FIELD_ADDR | FIELD_FLAGS, "b");

	bench->printer.branch_context = bench->printer.context;
	bench->printer.context.nr = true;
	print_vm_branch(&bench->printer, 0x1000, NULL, CALL | SAMPLE_VMENTRY, 0x2000);
	print_bench_expect(bench,
			   "host   vmentry                            1000 =>                0\n"
			   "guest   vmentry                               0 =>             2000\n");
	assert_true(bench->printer.context.nr);
	print_bench_free(bench);
}

static void both_halves_have_the_instruction(void **state)
{
	static const uint8_t bytes[] = { 0x0f, 0x01, 0xc2 };
	const struct insn insn = { .ip = 0x1000, .bytes = bytes, .length = 3 };
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_INSN, "b");

	bench->printer.branch_context = bench->printer.context;
	bench->printer.context.nr = true;
	print_vm_branch(&bench->printer, 0x1000, &insn, CALL | SAMPLE_VMENTRY, 0x2000);
	print_bench_expect(bench, "             1000 insn: 0f 01 c2\n"
				  "                0 insn: 0f 01 c2\n");
	print_bench_free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_open_until_the_flow_arrives),
		cmocka_unit_test(arriving_elsewhere_the_target_is_what_was_told),
		cmocka_unit_test(the_target_may_be_told_later_or_never),
		cmocka_unit_test(the_next_branch_completes_the_line),
		cmocka_unit_test(a_branch_within_a_block_has_its_names_and_instruction),
		cmocka_unit_test(branches_within_a_block_are_printed_together),
		cmocka_unit_test(lines_that_are_left_out_are_noted),
		cmocka_unit_test(a_branch_between_blocks_is_a_line),
		cmocka_unit_test(a_branch_without_an_instruction_shows_what_it_interrupts),
		cmocka_unit_test(letters_let_calls_and_returns_through),
		cmocka_unit_test(each_kind_of_branch_has_its_flags),
		cmocka_unit_test(a_branch_is_an_event_of_period_1),
		cmocka_unit_test(calls_are_indented_by_their_depth),
		cmocka_unit_test(the_column_of_calls_grows_at_once),
		cmocka_unit_test(the_column_of_calls_seldom_changes),
		cmocka_unit_test(the_dso_stands_before_indented_calls),
		cmocka_unit_test(what_is_no_call_has_no_name_among_calls),
		cmocka_unit_test(an_address_outside_of_the_trace_has_no_name),
		cmocka_unit_test(depth_is_followed_where_no_line_is_wanted),
		cmocka_unit_test(a_branch_has_the_cycles_since_the_last_one),
		cmocka_unit_test(a_branch_between_host_and_guest_is_two_lines),
		cmocka_unit_test(both_halves_have_the_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
