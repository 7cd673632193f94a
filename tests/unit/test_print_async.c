#include "decode/print/print_async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode/print/print_branch.h"
#include "decode/print/print_prefix.h"
#include "decode/print/print_waiting.h"
#include "tests/print_bench.h"

/* The flow is at 1000, the last instruction that ran, of which the tests say the rest. */

static struct insn insn = { .ip = 0x1000, .class = INSN_JCC, .target = 0x1800, .length = 2 };

static struct print_bench *bench_at(uint32_t fields, const char *letters)
{
	struct print_bench *bench = print_bench_new(fields, letters);

	bench->printer.ip = 0x1000;
	return bench;
}

/* The instruction is a branch that waits, and the flow goes on behind it. */
static void keep_waiting(struct printer *printer, struct block *block)
{
	*block = (struct block){ .ip = 0x1000, .insns = &insn, .count = 1 };
	print_waiting_keep(printer, (struct waiting_branch){ .block = block });
	printer->ip = insn.target;
}

/* What ran before the context changed was in this one. */
static void come_from(struct printer *printer, struct pt_context before)
{
	printer->branch_context = before;
	prefix_outdate(printer);
}

/* An instruction that packets alone tell of. */
static void add_insn(struct printer *printer, uint64_t ip, uint8_t flags)
{
	const struct flow_item item = { .kind = FLOW_IP, .flags = flags, .value = ip };

	print_async_insn(printer, &item);
}

static void expect(struct print_bench *bench, const char *expected)
{
	print_branch_settle(&bench->printer);
	print_bench_expect(bench, expected);
	print_bench_free(bench);
}

static void begin_at(struct printer *printer, uint64_t ip, uint8_t flags)
{
	const struct flow_item item = { .kind = FLOW_BEGIN, .flags = flags, .value = ip };

	print_async_begin(printer, &item);
}

static void tracing_begins_and_ends(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");
	struct printer *printer = &bench->printer;

	printer->is_off = true;
	begin_at(printer, 0x1000, 0);
	assert_false(printer->is_off);
	print_async_branch(printer, 0x2000);
	assert_int_equal(printer->ip, 0x2000);
	printer->period.is_begun = true;
	print_async_end(printer, 0);
	assert_true(printer->is_off);
	assert_false(printer->period.is_begun);
	assert_int_equal(printer->ip, 0);
	expect(bench, "  tr strt                               0 =>             1000\n"
		      "  hw int                             1000 =>             2000\n"
		      "  tr end  async                      2000 =>                0\n");
}

static void what_a_psb_states_is_no_branch(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	bench->printer.is_off = true;
	begin_at(&bench->printer, 0x3000, FLOW_STATED);
	assert_false(bench->printer.is_off);
	assert_int_equal(bench->printer.ip, 0x3000);
	expect(bench, "");
}

static void an_end_may_have_a_target(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	print_async_end(&bench->printer, 0x2000);
	begin_at(&bench->printer, 0x3000, 0);
	print_async_end_by_insn(&bench->printer, 0x4000);
	expect(bench, "  tr end  async                      1000 =>             2000\n"
		      "  tr strt                               0 =>             3000\n"
		      "  tr end                             3000 =>             4000\n");
}

static void what_waits_comes_first(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");
	struct printer *printer = &bench->printer;
	struct block block;

	keep_waiting(printer, &block);
	print_async_branch(printer, 0x2000);
	keep_waiting(printer, &block);
	print_async_end(printer, 0);
	keep_waiting(printer, &block);
	begin_at(printer, 0x3000, 0);
	expect(bench, "  jcc                                1000 =>             1800\n"
		      "  hw int                             1800 =>             2000\n"
		      "  jcc                                1000 =>             1800\n"
		      "  tr end  async                      1800 =>                0\n"
		      "  jcc                                1000 =>             1800\n"
		      "  tr strt                               0 =>             3000\n");
}

static void tracing_may_end_with_what_waits(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");
	struct block block;

	keep_waiting(&bench->printer, &block);
	print_async_end_by_insn(&bench->printer, 0x1800);
	assert_true(bench->printer.is_off);
	assert_int_equal(bench->printer.ip, 0);
	expect(bench, "  tr end  jcc                        1000 =>             1800\n");
}

static void a_vm_exit_is_two_halves(void **state)
{
	struct print_bench *bench = bench_at(FIELD_NR | FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	come_from(&bench->printer, (struct pt_context){ .bits = 64, .nr = true });
	print_async_branch(&bench->printer, 0x2000);
	assert_false(bench->printer.branch_context.nr);
	expect(bench, "guest   bcyh                               1000 =>                0\n"
		      "host   bcyh                                  0 =>             2000\n");
}

static void an_interrupt_in_a_guest_is_one_line(void **state)
{
	struct print_bench *bench = bench_at(FIELD_NR | FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");
	struct printer *printer = &bench->printer;

	printer->context.nr = true;
	come_from(printer, printer->context);
	print_async_branch(printer, 0x2000);
	expect(bench, "guest   hw int                             1000 =>             2000\n");
}

static void a_transaction_is_aborted_once(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	bench->printer.is_aborting = true;
	print_async_branch(&bench->printer, 0x2000);
	print_async_branch(&bench->printer, 0x3000);
	expect(bench, "  tx abrt                            1000 =>             2000\n"
		      "  hw int                             2000 =>             3000\n");
}

static void flags_are_those_of_the_context_before(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP, "b");
	struct pt_context before = { .bits = 64, .in_tx = true, .if_clear = true };

	come_from(&bench->printer, before);
	print_async_branch(&bench->printer, 0x2000);
	print_async_branch(&bench->printer, 0x3000);
	expect(bench, "  hw int          (xDt)              1000\n"
		      "  hw int                             2000\n");
}

static void tracing_begins_in_a_context_of_its_own(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP, "b");

	come_from(&bench->printer, (struct pt_context){ .in_tx = true, .if_clear = true });
	begin_at(&bench->printer, 0x2000, 0);
	expect(bench, "  tr strt                               0\n");
}

static void cycles_belong_to_one_line(void **state)
{
	struct print_bench *bench = bench_at(FIELD_IP | FIELD_IPC, "b");
	struct printer *printer = &bench->printer;

	add_insn(printer, 0x1000, 0);
	printer->ipc.told_cycles = printer->ipc.total.cycles = 4;
	printer->ipc.is_due = true;
	print_async_branch(printer, 0x2000);
	assert_false(printer->ipc.in_line || printer->ipc.is_due);
	add_insn(printer, 0x2000, 0);
	print_async_branch(printer, 0x3000);
	expect(bench, "             1000 \t IPC: 0.25 (1/4) \n"
		      "             2000\n");
}

static void a_branch_may_have_no_line(void **state)
{
	struct print_bench *bench = bench_at(FIELD_IP, "i");

	bench->printer.ipc.is_due = true;
	begin_at(&bench->printer, 0x1000, 0);
	print_async_branch(&bench->printer, 0x2000);
	assert_int_equal(bench->printer.ip, 0x2000);
	assert_true(bench->printer.ipc.is_due); /* for a line to come */
	print_async_end_by_insn(&bench->printer, 0x3000);
	expect(bench, "");
}

static void an_instruction_has_a_line_at_once(void **state)
{
	struct print_bench *bench = bench_at(FIELD_FLAGS | FIELD_IP, "i");

	bench->printer.context.in_tx = true;
	add_insn(&bench->printer, 0x2000, 0);
	assert_int_equal(bench->printer.ip, 0x2000);
	print_async_branch(&bench->printer, 0x3000);
	expect(bench, "  x                                  2000\n");
}

/* Its line is about the context that it ran in. */
static void or_when_its_branch_comes(void **state)
{
	struct print_bench *bench = bench_at(FIELD_NR | FIELD_FLAGS | FIELD_IP, "i");
	struct printer *printer = &bench->printer;

	bench->config.insn_addr = true;
	printer->context.nr = printer->context.in_tx = true;
	add_insn(printer, 0x2000, FLOW_TAKEN);
	printer->context.nr = printer->context.in_tx = false;
	print_async_branch(printer, 0x3000);
	assert_false(printer->context.nr);
	print_async_branch(printer, 0x4000);
	add_insn(printer, 0x5000, FLOW_TAKEN);
	print_async_end(printer, 0);
	expect(bench, "guest   bcyxh                             3000             2000\n"
		      "host   tr end  async                        0             5000\n");
}

static void without_lines_of_instructions_it_is_where_a_branch_is_from(void **state)
{
	struct print_bench *bench = bench_at(FIELD_IP | FIELD_ADDR, "b");

	add_insn(&bench->printer, 0x2000, FLOW_TAKEN);
	assert_int_equal(bench->printer.ipc.total.insns, 1);
	print_async_branch(&bench->printer, 0x3000);
	expect(bench, "             2000 =>             3000\n");
}

/* The last branch is still that of the thread before. */
static void tracing_begins_once_the_thread_has_the_cpu(void **state)
{
	static const struct switch_entry switches[] = { { .time = 0, .settled = 100, .tid = 9 } };
	struct print_bench *bench = bench_at(FIELD_TID | FIELD_IP, "b");
	struct printer *printer = &bench->printer;

	printer->where.pid = -1;
	printer->where.switches = switches;
	printer->where.switch_count = 1;
	print_async_branch(printer, 0x2000);
	begin_at(printer, 0x3000, 0);
	expect(bench, "   -1              1000\n"
		      "    9                 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tracing_begins_and_ends),
		cmocka_unit_test(what_a_psb_states_is_no_branch),
		cmocka_unit_test(an_end_may_have_a_target),
		cmocka_unit_test(what_waits_comes_first),
		cmocka_unit_test(tracing_may_end_with_what_waits),
		cmocka_unit_test(a_vm_exit_is_two_halves),
		cmocka_unit_test(an_interrupt_in_a_guest_is_one_line),
		cmocka_unit_test(a_transaction_is_aborted_once),
		cmocka_unit_test(flags_are_those_of_the_context_before),
		cmocka_unit_test(tracing_begins_in_a_context_of_its_own),
		cmocka_unit_test(cycles_belong_to_one_line),
		cmocka_unit_test(a_branch_may_have_no_line),
		cmocka_unit_test(an_instruction_has_a_line_at_once),
		cmocka_unit_test(or_when_its_branch_comes),
		cmocka_unit_test(without_lines_of_instructions_it_is_where_a_branch_is_from),
		cmocka_unit_test(tracing_begins_once_the_thread_has_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
