#include "decode/print/print_waiting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode/print/print_branch.h"
#include "decode/print/print_line.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"
#include "tests/print_bench.h"

/* A jump and a return at 1000, of which nothing else is known. */

static struct insn insns[] = {
	{ .ip = 0x1000, .class = INSN_JMP, .target = 0x1004, .length = 2 },
	{ .ip = 0x1004, .class = INSN_JCC, .target = 0x1000, .length = 2 },
	{ .ip = 0x1006, .class = INSN_RET, .length = 1 },
};

static struct block loop = { .ip = 0x1000, .insns = insns, .count = 2 };
static struct block ret = { .ip = 0x1006, .insns = insns + 2, .count = 1 };

static struct print_bench *bench_with(uint32_t fields, const char *letters)
{
	loop.branches = ret.branches = NULL;
	loop.lines = ret.lines = NULL;
	return print_bench_new(fields, letters);
}

static void keep(struct printer *printer, struct block *block, unsigned index, uint64_t period)
{
	print_waiting_keep(printer, (struct waiting_branch){ block, index, period, false });
}

static void expect(struct print_bench *bench, const char *expected)
{
	print_branch_settle(&bench->printer);
	print_bench_expect(bench, expected);
	print_bench_free(bench);
}

static void nothing_is_printed_where_none_waits(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP, "b");

	print_waiting_settle(&bench->printer);
	print_waiting_finish(&bench->printer, 0x2000, 0);
	expect(bench, "");
}

static void an_ordinary_branch_goes_where_its_instruction_says(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &loop, 1, 0);
	print_waiting_settle(&bench->printer);
	print_waiting_settle(&bench->printer);
	expect(bench, "             1004 =>             1000\n");
}

static void also_within_its_block(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &loop, 0, 0);
	print_waiting_settle(&bench->printer);
	assert_false(bench->printer.line.open);
	expect(bench, "             1000 =>             1004\n");
}

static void without_a_target_it_is_no_branch(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &ret, 0, 0);
	print_waiting_settle(&bench->printer);
	expect(bench, "");
}

static void the_target_may_be_told(void **state)
{
	struct print_bench *bench = bench_with(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &ret, 0, 0);
	print_waiting_finish(&bench->printer, 0x2000, 0);
	print_waiting_finish(&bench->printer, 0x3000, 0);
	expect(bench, "  return                             1006 =>             2000\n");
}

static void tracing_may_end_with_it(void **state)
{
	struct print_bench *bench = bench_with(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &ret, 0, 0);
	print_waiting_finish(&bench->printer, 0, SAMPLE_TRACE_END);
	expect(bench, "  tr end  return                     1006 =>                0\n");
}

static void its_context_is_the_one_before(void **state)
{
	struct print_bench *bench = bench_with(FIELD_NR | FIELD_FLAGS | FIELD_IP, "b");
	struct printer *printer = &bench->printer;

	printer->context.nr = printer->context.in_tx = true;
	keep(printer, &loop, 1, 0);
	printer->context = pt_context_unknown();
	prefix_outdate(printer);
	print_waiting_settle(printer);
	assert_false(printer->context.nr);
	expect(bench, "guest   jcc               (x)              1004\n");
}

static void between_host_and_guest_it_is_two_lines(void **state)
{
	struct print_bench *bench = bench_with(FIELD_NR | FIELD_IP | FIELD_ADDR, "b");

	keep(&bench->printer, &ret, 0, 0);
	bench->printer.context.nr = true;
	print_waiting_finish(&bench->printer, 0x2000, 0);
	expect(bench, "host              1006 =>                0\n"
		      "guest                 0 =>             2000\n");
}

static void its_line_as_an_instruction_comes_first(void **state)
{
	struct print_bench *bench = bench_with(FIELD_EVENT | FIELD_PERIOD | FIELD_IP, "bi5i");

	keep(&bench->printer, &ret, 0, 5);
	print_waiting_finish(&bench->printer, 0x2000, 0);
	assert_int_equal(bench->printer.waiting.period, 0);
	expect(bench, "         5 instructions:k:              1006\n"
		      "         1   branches:k:              1006\n");
}

static void where_branches_have_no_lines_that_is_all(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP, "i5i");

	keep(&bench->printer, &loop, 1, 5);
	print_waiting_settle(&bench->printer);
	keep(&bench->printer, &loop, 1, 0);
	print_waiting_finish(&bench->printer, 0x2000, 0);
	expect(bench, "             1004\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_printed_where_none_waits),
		cmocka_unit_test(an_ordinary_branch_goes_where_its_instruction_says),
		cmocka_unit_test(also_within_its_block),
		cmocka_unit_test(without_a_target_it_is_no_branch),
		cmocka_unit_test(the_target_may_be_told),
		cmocka_unit_test(tracing_may_end_with_it),
		cmocka_unit_test(its_context_is_the_one_before),
		cmocka_unit_test(between_host_and_guest_it_is_two_lines),
		cmocka_unit_test(its_line_as_an_instruction_comes_first),
		cmocka_unit_test(where_branches_have_no_lines_that_is_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
