#include "decode/flow/odd_branch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "decode/flow/mismatch_log.h"
#include "tests/flow_fixture.h"

/* A kernel with calls of all sizes, and places that follow none (from KERNEL on):
 *	00 call 40 (5 bytes)	08 call *%rax (2)	10 call *0x8(%rax) (3)
 *	18 call *0x100(,%rax,8) (7)			20 cs call *0x100(,%rax,8) (8)
 *	28 jmp *%rax		30 nops
 *	38 ret			3a call *%rax		40 the second function
 *	48 mov %rax,(%rsp); ret				50 mov %r8,(%rsp); jmp 38
 *	58 mov %rax,0x8(%rsp); ret */
enum {
	AFTER_5 = 0x05,
	AFTER_2 = 0x0a,
	AFTER_3 = 0x13,
	AFTER_7 = 0x1f,
	AFTER_8 = 0x28,
	JUMP = 0x28,
	AFTER_JUMP = 0x2a,
	NOWHERE = 0x34,
	RETURN = 0x38,
	CALL = 0x3a,
	FUNCTION = 0x40,
	RETPOLINE = 0x48,
	RETPOLINE_BY_THUNK = 0x50,
	OTHER_STORE = 0x58,
	FOREIGN = 0x1000,
};

static const uint64_t kernel = 0xffffffff81000000;

static const uint8_t bytes[0x60] = {
	[0x00] = 0xe8, 0x3b,          0x00, 0x00,          0x00,          [0x08] = 0xff,
	0xd0,          [0x10] = 0xff, 0x50, 0x08,          [0x18] = 0xff, 0x14,
	0xc5,          0x00,          0x01, 0x00,          0x00,          [0x20] = 0x2e,
	0xff,          0x14,          0xc5, 0x00,          0x01,          0x00,
	0x00,          [0x28] = 0xff, 0xe0, [0x38] = 0xc3, [0x3a] = 0xff, 0xd0,
	[0x48] = 0x48, 0x89,          0x04, 0x24,          0xc3,          [0x50] = 0x4c,
	0x89,          0x04,          0x24, 0xeb,          0xe2,          [0x58] = 0x48,
	0x89,          0x44,          0x24, 0x08,          0xc3,
};

struct fixture {
	struct flow_fixture flow;
	struct mismatch_log log;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture.flow);
	flow_fixture_code(&fixture.flow, kernel, bytes, sizeof(bytes));
	assert_true(bench_add_function(fixture.flow.machines.host, kernel));
	assert_true(bench_add_function(fixture.flow.machines.host, kernel + FUNCTION));
	flow_fixture_begin(&fixture.flow, kernel, false);
	fixture.flow.flow.where.log = &fixture.log;
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	mismatch_log_free(&f->log);
	flow_fixture_deinit(&f->flow);
	return 0;
}

/* How many odd branches a TIP to `to` makes of the one in the block at `from`. */
static uint32_t odd(struct fixture *f, uint64_t from, uint64_t to)
{
	f->flow.flow.odd_branches = 0;
	odd_branch_note(&f->flow.flow, flow_fixture_block(&f->flow, kernel + from), kernel + to);
	return f->flow.flow.odd_branches;
}

static void a_return_goes_behind_a_call_of_any_size(void **state)
{
	static const uint64_t behind[] = { AFTER_2, AFTER_3, AFTER_5, AFTER_7, AFTER_8 };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++)
		assert_int_equal(odd(f, RETURN, behind[i]), 0);
	assert_int_equal(f->log.count, 0);
}

static void a_return_to_anywhere_else_is_odd(void **state)
{
	static const uint64_t elsewhere[] = { 0, AFTER_2 + 1, AFTER_JUMP, NOWHERE, FUNCTION };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		assert_int_equal(odd(f, RETURN, elsewhere[i]), 1);
}

/* They stand for calls and jumps. */
static void a_retpoline_may_go_anywhere(void **state)
{
	struct fixture *f = *state;

	return_stack_push(&f->flow.flow.calls, kernel + AFTER_5);
	assert_int_equal(odd(f, RETPOLINE, FUNCTION), 0);
	assert_int_equal(odd(f, RETPOLINE, NOWHERE), 0);
	assert_int_equal(odd(f, RETPOLINE_BY_THUNK, FUNCTION), 0);
	assert_int_equal(f->log.count, 0);
	assert_int_equal(odd(f, OTHER_STORE, FUNCTION), 2);
}

/* With compressed returns, it would have been a bit. */
static void a_tip_for_a_return_to_its_call_is_odd(void **state)
{
	struct fixture *f = *state;

	return_stack_push(&f->flow.flow.calls, kernel + AFTER_2);
	assert_int_equal(odd(f, RETURN, AFTER_2), 1);
	f->flow.config.noretcomp = true;
	assert_int_equal(odd(f, RETURN, AFTER_2), 0);
}

static void a_return_elsewhere_than_to_its_call_is_odd(void **state)
{
	struct fixture *f = *state;

	return_stack_push(&f->flow.flow.calls, kernel + AFTER_5);
	assert_int_equal(odd(f, RETURN, AFTER_2), 1);
	assert_int_equal(f->log.count, 0); /* programs do so */
	assert_int_equal(odd(f, RETURN, NOWHERE), 2);
	assert_int_equal(f->log.count, 1);
}

/* It makes functions return to its handler, whatever called them. */
static void the_function_graph_tracer_is_not_odd(void **state)
{
	struct fixture *f = *state;
	struct symbols *symbols = &f->flow.machines.host->symbols;
	const struct symbol handler = { .start = kernel + NOWHERE,
					.name = "return_to_handler",
					.is_global = true };

	return_stack_push(&f->flow.flow.calls, kernel + AFTER_5);
	assert_int_equal(odd(f, RETURN, NOWHERE), 2);
	assert_int_equal(symbols_add(symbols, &handler), 0);
	assert_int_equal(symbols_finish(symbols, true), 0);
	assert_int_equal(odd(f, RETURN, NOWHERE), 0);
	assert_int_equal(odd(f, RETURN, NOWHERE + 1), 2);
}

static void a_call_goes_to_the_beginning_of_a_function(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(odd(f, CALL, 0), 0);
	assert_int_equal(odd(f, CALL, FUNCTION), 0);
	assert_int_equal(odd(f, CALL, FUNCTION + 4), 0); /* behind its ENDBR */
	assert_int_equal(odd(f, CALL, FUNCTION + 5), 1);
	assert_int_equal(odd(f, CALL, NOWHERE), 1);
}

static void where_no_function_is_known_a_call_may_go(void **state)
{
	assert_int_equal(odd(*state, CALL, (uint64_t)-0x1000000), 0);
}

static void a_function_may_also_begin_with_an_endbr(void **state)
{
	struct fixture *f = *state;
	struct machine *host = f->flow.machines.host;

	assert_true(odd_branch_is_entry(host, kernel + FUNCTION, 0));
	assert_true(odd_branch_is_entry(host, kernel + FUNCTION + 4, 0));
	assert_false(odd_branch_is_entry(host, kernel + FUNCTION + 5, 0));
	assert_false(odd_branch_is_entry(host, (uint64_t)-0x1000000, 0));
}

static void a_jump_may_go_anywhere(void **state)
{
	assert_int_equal(odd(*state, JUMP, NOWHERE), 0);
}

static void programs_are_not_looked_at(void **state)
{
	struct fixture *f = *state;

	flow_fixture_code(&f->flow, FOREIGN, bytes, sizeof(bytes));
	odd_branch_note(&f->flow.flow, flow_fixture_block(&f->flow, FOREIGN + RETURN),
			kernel + NOWHERE);
	odd_branch_note(&f->flow.flow, flow_fixture_block(&f->flow, kernel + RETURN),
			FOREIGN + NOWHERE);
	assert_int_equal(f->flow.flow.odd_branches, 0);
}

static void what_is_odd_is_logged_with_both_ends(void **state)
{
	struct fixture *f = *state;

	f->flow.flow.clock.now = 4711;
	assert_int_equal(odd(f, RETURN, NOWHERE), 1);
	assert_int_equal(f->log.count, 1);
	assert_int_equal(f->log.items[0].kind, MISMATCH_ODD);
	assert_int_equal(f->log.items[0].from, kernel + RETURN);
	assert_int_equal(f->log.items[0].to, kernel + NOWHERE);
	assert_int_equal(f->log.items[0].time, 4711);
	assert_int_equal(f->log.items[0].position, 0);
}

static void without_a_log_it_is_only_counted(void **state)
{
	struct fixture *f = *state;

	f->flow.flow.where.log = NULL;
	assert_int_equal(odd(f, RETURN, NOWHERE), 1);
	assert_int_equal(f->log.count, 0);
}

static void only_an_interrupt_returns_into_the_midst_of_a_function(void **state)
{
	struct fixture *f = *state;
	struct machine *host = f->flow.machines.host;

	assert_true(odd_branch_needs_interrupt(host, kernel + NOWHERE, 0));
	assert_false(odd_branch_needs_interrupt(host, kernel + AFTER_7, 0));
	assert_false(odd_branch_needs_interrupt(host, kernel + FUNCTION, 0));
	assert_false(odd_branch_needs_interrupt(host, kernel - 0x1000000, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_return_goes_behind_a_call_of_any_size),
		TEST(a_return_to_anywhere_else_is_odd),
		TEST(a_retpoline_may_go_anywhere),
		TEST(a_tip_for_a_return_to_its_call_is_odd),
		TEST(a_return_elsewhere_than_to_its_call_is_odd),
		TEST(the_function_graph_tracer_is_not_odd),
		TEST(a_call_goes_to_the_beginning_of_a_function),
		TEST(where_no_function_is_known_a_call_may_go),
		TEST(a_jump_may_go_anywhere),
		TEST(a_function_may_also_begin_with_an_endbr),
		TEST(programs_are_not_looked_at),
		TEST(what_is_odd_is_logged_with_both_ends),
		TEST(without_a_log_it_is_only_counted),
		TEST(only_an_interrupt_returns_into_the_midst_of_a_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
