#include "decode/flow/flow_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/met_sites.h"
#include "decode/flow/mismatch_log.h"
#include "tests/flow_fixture.h"

/* A flow that is told, packet by packet, what its code does next:
 *	1000 nop; 1001 je 1010; 1003 jmp *%rax
 *	1010 call 1020; 1015 ret
 *	1020 ret
 *	1030 jmp 1030
 *	1040 wrmsr; 1042 iretq
 *	1050 vmlaunch; 1053 jmp *%rax
 *	1058 nop; 1059 ud2
 *	105f nop; and no more */
enum {
	BASE = 0x1000,
	BY_REGISTER = 0x1003,
	CALLER = 0x1010,
	BEHIND = 0x1015,
	LEAF = 0x1020,
	LOOP = 0x1030,
	FAR = 0x1040,
	IRET = 0x1042,
	VMENTRY = 0x1050,
	BUG = 0x1058,
	UD2 = 0x1059,
	LAST = 0x105f,
};

static const uint8_t bytes[0x60] = {
	[0x00] = 0x90, 0x74, 0x0d,          0xff, 0xe0,          [0x10] = 0xe8, 0x0b,
	0x00,          0x00, 0x00,          0xc3, [0x20] = 0xc3, [0x30] = 0xeb, 0xfe,
	[0x40] = 0x0f, 0x30, 0x48,          0xcf, [0x50] = 0x0f, 0x01,          0xc2,
	0xff,          0xe0, [0x58] = 0x90, 0x0f, 0x0b,          [0x5f] = 0x90,
};

static const uint64_t kernel = 0xffffffff81000000;

static int set_up(void **state)
{
	static struct flow_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	flow_fixture_code(&fixture, BASE, bytes, sizeof(bytes));
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

static struct flow_fixture *begin_at(void **state, uint64_t ip)
{
	struct flow_fixture *f = *state;

	flow_fixture_begin(f, ip, false);
	return f;
}

/* The last of `bits` is the next one. */
static void run_bits(struct flow_fixture *f, uint64_t bits, uint32_t count)
{
	f->flow.tnt = bits;
	f->flow.tnt_count = count;
	flow_run_tnt(&f->run);
}

static void a_tip_says_where_an_indirect_branch_goes(void **state)
{
	struct flow_fixture *f = begin_at(state, BY_REGISTER);

	flow_take_branch(&f->run, CALLER);
	flow_fixture_expect(f, "BLOCK(1003:1+) TO(1010)");
	assert_int_equal(f->flow.ip, CALLER);
	assert_ptr_equal(f->flow.block, flow_fixture_block(f, CALLER));
	assert_int_equal(f->flow.addresses, 1);
	assert_int_equal(f->flow.insns, 1);
	assert_ptr_equal(flow_fixture_block(f, BY_REGISTER)->successor[1], f->flow.block);
}

static void only_a_return_undoes_a_call(void **state)
{
	struct flow_fixture *f = begin_at(state, BY_REGISTER);

	return_stack_push(&f->flow.calls, BEHIND);
	flow_take_branch(&f->run, CALLER);
	assert_int_equal(f->flow.calls.count, 1);
}

static void where_code_ends_a_tip_begins_anew(void **state)
{
	struct flow_fixture *f = begin_at(state, LAST);

	flow_take_branch(&f->run, BASE);
	flow_fixture_expect(f, "BLOCK(105f:1) TIME(0) GAP(1) AT(1060) BEGIN(1000)");
}

static void a_return_by_tip_undoes_its_call(void **state)
{
	struct flow_fixture *f = begin_at(state, BEHIND);

	return_stack_push(&f->flow.calls, 1);
	return_stack_push(&f->flow.calls, 2);
	flow_take_branch(&f->run, LOOP);
	flow_fixture_expect(f, "BLOCK(1015:1+) TO(1030)");
	assert_int_equal(f->flow.calls.count, 1);
}

static void a_tip_at_a_conditional_branch_is_at_odds(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	flow_take_branch(&f->run, CALLER);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1000) BEGIN(1010)");
	assert_true(f->flow.disagrees);
	assert_int_equal(f->flow.gaps, 1);
	assert_int_equal(f->flow.state, FLOW_RUNNING);
	assert_int_equal(f->flow.ip, CALLER);
}

/* Its exception has a FUP, and is no branch of its own. */
static void nothing_but_a_fup_leads_away_from_an_undefined_instruction(void **state)
{
	struct flow_fixture *f = begin_at(state, BUG);

	assert_int_equal(flow_walk_to(&f->run, UD2), 0);
	flow_fixture_expect(f, "BLOCK(1058:1)");
	f = begin_at(state, BUG);
	assert_int_equal(flow_walk_to(&f->run, LAST), -PTVM_INCONSISTENT);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1058)");
	f = begin_at(state, BUG);
	flow_take_branch(&f->run, CALLER);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1058) BEGIN(1010)");
	f = begin_at(state, BUG);
	run_bits(f, 1, 1);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1058)");
	f = begin_at(state, BUG);
	flow_end_by_branch(&f->run, CALLER);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1058)");
}

static void a_far_transfer_changes_the_context_before_it_arrives(void **state)
{
	struct flow_fixture *f = begin_at(state, IRET);

	f->flow.next_context.cr3 = 0x5000;
	flow_take_branch(&f->run, BASE);
	flow_fixture_expect(f, "BLOCK(1042:1+) CONTEXT(0) TO(1000)");
	assert_int_equal(f->batch.contexts[0].cr3, 0x5000);
	assert_null(f->flow.block);
}

static void an_entry_that_no_pip_announces_has_failed(void **state)
{
	struct flow_fixture *f = begin_at(state, VMENTRY);

	flow_take_branch(&f->run, BASE);
	flow_fixture_expect(f, "BLOCK(1050:1) BLOCK(1053:1+) TO(1000)");
}

static void an_entry_goes_to_the_guest(void **state)
{
	struct flow_fixture *f = begin_at(state, VMENTRY);

	f->flow.next_context.nr = true;
	flow_take_branch(&f->run, 0x7000);
	flow_fixture_expect(f, "BLOCK(1050:1+) CONTEXT(0) TO(7000)");
	assert_true(f->flow.context.nr);
	assert_int_equal(f->flow.ip, 0x7000);
}

static void bits_are_taken_oldest_first(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	run_bits(f, 3, 2);
	flow_fixture_expect(f, "BLOCK(1000:2+) BLOCK(1010:2+) TO(1015)");
	assert_int_equal(f->flow.tnt_count, 0);
	assert_int_equal(f->flow.calls.count, 0);
	assert_int_equal(f->flow.returns_met, 1);
	assert_int_equal(f->flow.insns, 4);
	f = begin_at(state, BASE);
	return_stack_push(&f->flow.calls, BASE);
	run_bits(f, 0, 1);
	flow_fixture_expect(f, "BLOCK(1000:2)");
	assert_int_equal(f->flow.ip, BY_REGISTER);
}

static void a_bit_for_a_return_without_a_call_is_at_odds(void **state)
{
	struct flow_fixture *f = begin_at(state, BEHIND);

	run_bits(f, 1, 1);
	flow_fixture_expect(f, "BLOCK(1015:1+) TIME(0) GAP(2) AT(1015)");
	assert_int_equal(f->flow.state, FLOW_LOST);
}

static void a_return_is_always_taken(void **state)
{
	struct flow_fixture *f = begin_at(state, BEHIND);

	return_stack_push(&f->flow.calls, BASE);
	run_bits(f, 0, 1);
	flow_fixture_expect(f, "BLOCK(1015:1+) TIME(0) GAP(2) AT(1015)");
}

static void a_bit_for_a_far_transfer_is_at_odds(void **state)
{
	struct flow_fixture *f = begin_at(state, IRET);

	run_bits(f, 1, 1);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1042)");
	assert_int_equal(f->flow.tnt_count, 0);
}

static void bits_behind_a_deferred_tip_are_for_later(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP, BASE, PT_IP_AUTO);
	f = begin_at(state, BY_REGISTER);
	run_bits(f, 1, 1);
	flow_fixture_expect(f, "BLOCK(1003:1+) TO(1000) BLOCK(1000:2+)");
}

static void code_that_is_not_there_is_a_gap(void **state)
{
	struct flow_fixture *f = begin_at(state, LAST);

	run_bits(f, 1, 1);
	flow_fixture_expect(f, "BLOCK(105f:1) TIME(0) GAP(1) AT(1060)");
	assert_false(f->flow.disagrees);
	f = begin_at(state, 0x9000);
	assert_int_equal(flow_walk_to(&f->run, 0x9001), -PTVM_INCONSISTENT);
	flow_fixture_expect(f, "TIME(0) GAP(1) AT(9000)");
}

static void a_walk_ends_before_the_instruction(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	assert_int_equal(flow_walk_to(&f->run, BASE + 1), 0);
	flow_fixture_expect(f, "BLOCK(1000:1)");
	assert_int_equal(f->flow.ip, BASE + 1);
	assert_int_equal(flow_walk_to(&f->run, BASE + 1), 0);
	flow_fixture_expect(f, "BLOCK(1000:1)");
}

static void calls_on_the_way_are_remembered_as_far_as_they_ran(void **state)
{
	struct flow_fixture *f = begin_at(state, CALLER);
	uint64_t ip;

	assert_int_equal(flow_walk_to(&f->run, LEAF), 0);
	flow_fixture_expect(f, "BLOCK(1010:1)");
	assert_true(return_stack_pop(&f->flow.calls, &ip));
	assert_int_equal(ip, BEHIND);
	f = begin_at(state, CALLER);
	assert_int_equal(flow_walk_to(&f->run, CALLER), 0);
	assert_int_equal(f->flow.calls.count, 0);
}

static void a_call_that_did_not_run_is_not_remembered(void **state)
{
	/* nop; call 2007; 2007 nop; ret */
	static const uint8_t code[] = { 0x90, 0xe8, 0x01, 0, 0, 0, 0xcc, 0x90, 0xc3 };
	struct flow_fixture *f = *state;

	flow_fixture_code(f, 0x2000, code, sizeof(code));
	f = begin_at(state, 0x2000);
	assert_int_equal(flow_walk_to(&f->run, 0x2001), 0);
	flow_fixture_expect(f, "BLOCK(2000:1)");
	assert_int_equal(f->flow.calls.count, 0);
	assert_null(f->flow.block);
	f = begin_at(state, 0x2000);
	assert_int_equal(flow_walk_to(&f->run, 0x2008), 0);
	flow_fixture_expect(f, "BLOCK(2000:3)");
	assert_int_equal(f->flow.calls.count, 1);
}

/* So much in a row is no code. */
static void code_without_a_branch_is_walked_for_32768_instructions(void **state)
{
	enum { NOPS = 40000, AT = 0x100000, MOST = 32768 };
	struct flow_fixture *f = *state;
	uint8_t *nops = malloc(NOPS);

	assert_non_null(nops);
	memset(nops, 0x90, NOPS);
	flow_fixture_code(f, AT, nops, NOPS);
	free(nops);
	f = begin_at(state, AT);
	assert_int_equal(flow_walk_to(&f->run, AT + MOST), 0);
	assert_int_equal(f->flow.insns, MOST);
	f = begin_at(state, AT);
	assert_int_equal(flow_walk_to(&f->run, AT + MOST + BLOCK_MAX_INSNS), -PTVM_INCONSISTENT);
	assert_int_equal(f->batch.items[f->batch.count - 2].count, GAP_LOOP);
}

static void no_walk_passes_a_branch_that_needs_a_packet(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	assert_int_equal(flow_walk_to(&f->run, CALLER), -PTVM_INCONSISTENT);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1000)");
	assert_int_equal(f->flow.state, FLOW_LOST);
	assert_true(f->flow.disagrees);
}

static void a_walk_that_never_ends_is_ended(void **state)
{
	struct flow_fixture *f = begin_at(state, LOOP);

	assert_int_equal(flow_walk_to(&f->run, BASE), -PTVM_INCONSISTENT);
	assert_int_equal(f->batch.count, 3); /* what led there is not told */
	assert_int_equal(f->batch.items[1].kind, FLOW_GAP);
	assert_int_equal(f->batch.items[1].count, GAP_LOOP);
	assert_in_range(f->flow.insns, 1, 10 * BLOCK_MAX_INSNS); /* it is noticed at once */
	assert_false(f->flow.disagrees);
}

/* As behind the calls of retpolines: pause; lfence; jmp to the pause. */
static void no_kernel_runs_a_loop_that_never_ends(void **state)
{
	static const uint8_t code[] = { 0xc3, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9 };
	struct flow_fixture *f = *state;

	flow_fixture_code(f, kernel, code, sizeof(code));
	f = begin_at(state, kernel);
	return_stack_push(&f->flow.calls, kernel + 1);
	run_bits(f, 3, 2);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:1+) TO(ffffffff81000001) TIME(0) GAP(5) "
			       "AT(ffffffff81000006)");
	assert_true(f->flow.disagrees);
}

static void a_quick_walk_looks_at_no_code(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	f->flow.quick = 1;
	assert_int_equal(flow_walk_to(&f->run, 0x9000), 0);
	flow_fixture_expect(f, "");
	assert_int_equal(f->flow.ip, 0x9000);
}

static void tracing_ends_at_the_branch_that_goes_there(void **state)
{
	struct flow_fixture *f = begin_at(state, CALLER);

	flow_end_by_branch(&f->run, LEAF);
	flow_fixture_expect(f, "BLOCK(1010:1+) END(1020)");
	f = begin_at(state, BASE);
	flow_end_by_branch(&f->run, CALLER);
	flow_fixture_expect(f, "BLOCK(1000:2+) END(1010)");
	f = begin_at(state, BASE);
	flow_end_by_branch(&f->run, BY_REGISTER);
	flow_fixture_expect(f, "BLOCK(1000:2) END(1003)");
	f = begin_at(state, BY_REGISTER);
	flow_end_by_branch(&f->run, 0x9999);
	flow_fixture_expect(f, "BLOCK(1003:1+) END(9999)");
}

static void a_conditional_branch_goes_to_no_third_place(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	flow_end_by_branch(&f->run, 0x9999);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1000)");
	f = begin_at(state, BASE);
	flow_end_by_branch(&f->run, 0);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1000)");
}

/* Erratum SKL014. */
static void with_a_filter_it_may_have_left_without_telling(void **state)
{
	struct flow_fixture *f = *state;

	strcpy(f->config.filter, "filter 0x1000/0x10");
	f = begin_at(state, BASE);
	flow_end_by_branch(&f->run, 0);
	flow_fixture_expect(f, "BLOCK(1000:2+) END(0)");
}

static void without_a_target_a_far_transfer_ended_it(void **state)
{
	struct flow_fixture *f = begin_at(state, FAR);

	flow_end_by_branch(&f->run, 0);
	flow_fixture_expect(f, "BLOCK(1040:2+) END(0)");
}

static void or_what_can_switch_tracing_off(void **state)
{
	/* wrmsr; jmp *%rax */
	static const uint8_t code[] = { 0x0f, 0x30, 0xff, 0xe0 };
	struct flow_fixture *f = *state;

	flow_fixture_code(f, 0x2000, code, sizeof(code));
	f = begin_at(state, 0x2000);
	flow_end_by_branch(&f->run, 0);
	flow_fixture_expect(f, "BLOCK(2000:1+) END(0)");
}

static void the_end_may_be_some_blocks_on(void **state)
{
	struct flow_fixture *f = begin_at(state, LOOP);

	flow_end_by_branch(&f->run, 0x9999);
	assert_int_equal(f->batch.items[f->batch.count - 2].count, GAP_LOOP);
	f = begin_at(state, LAST);
	flow_end_by_branch(&f->run, 0x9999);
	flow_fixture_expect(f, "BLOCK(105f:1) TIME(0) GAP(1) AT(1060)");
}

static void a_gap_forgets_where_the_flow_is(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	assert_false(flow_is_in_doubt(&f->flow));
	return_stack_push(&f->flow.calls, BASE);
	f->flow.block = flow_fixture_block(f, BASE);
	f->flow.announced.at_fup = true;
	f->flow.tnt_count = 3;
	f->flow.cycles = 5;
	flow_gap(&f->run, GAP_OVERFLOW, 0);
	flow_fixture_expect(f, "TIME(5) GAP(3) AT(0)");
	assert_int_equal(f->flow.state, FLOW_LOST);
	assert_null(f->flow.block);
	assert_false(f->flow.announced.at_fup);
	assert_int_equal(f->flow.tnt_count, 0);
	assert_int_equal(f->flow.calls.count, 0);
	assert_false(flow_is_in_doubt(&f->flow));
}

static void a_doubt_stays_until_it_is_settled(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	flow_gap(&f->run, GAP_MISMATCH, 0);
	flow_gap(&f->run, GAP_OVERFLOW, 0);
	assert_true(flow_is_in_doubt(&f->flow));
	assert_int_equal(f->flow.gaps, 2);
}

static void that_it_was_lost_and_found_is_logged(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);
	struct mismatch_log log = { 0 };

	f->flow.where.log = &log;
	f->flow.agreed = 11;
	f->flow.clock.now = 4711;
	flow_gap(&f->run, GAP_MISMATCH, BASE);
	flow_begin_at(&f->run, LEAF, 0);
	assert_int_equal(log.count, 2);
	assert_int_equal(log.items[0].kind, MISMATCH_LOST);
	assert_int_equal(log.items[0].time, 4711);
	assert_int_equal(log.items[0].agreed, 11);
	assert_int_equal(log.items[1].kind, MISMATCH_FOUND);
	mismatch_log_free(&log);
}

/* That a branch was taken, or not, is what any code would say. */
static void a_flow_with_a_log_knows_where_packets_agreed_last(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);
	struct mismatch_log log = { 0 };
	uint64_t position;

	f->flow.cursor.window.position = 4711;
	position = pt_cursor_position(&f->flow.cursor);
	f->flow.where.log = &log;
	run_bits(f, 1, 1);
	assert_int_equal(f->flow.agreed, 0);
	run_bits(f, 1, 1);
	assert_int_equal(f->flow.ip, BEHIND);
	assert_int_equal(f->flow.agreed, position);
	f->flow.agreed = 0;
	assert_int_equal(flow_walk_to(&f->run, BEHIND), 0);
	assert_int_equal(f->flow.agreed, position);
	f->flow.agreed = 0;
	flow_take_branch(&f->run, BY_REGISTER);
	assert_int_equal(f->flow.agreed, position);
	f->flow.agreed = 0;
	flow_take_branch(&f->run, BASE);
	flow_take_branch(&f->run, CALLER);
	assert_int_equal(log.items[0].agreed, position);
	mismatch_log_free(&log);
}

static void tracing_begins_with_the_context_that_holds(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	f->flow.state = FLOW_DISABLED;
	f->flow.announced.at_fup = f->flow.announced.overflowed = true;
	f->flow.next_context.bits = 32;
	f->flow.block = flow_fixture_block(f, BASE);
	flow_begin_at(&f->run, LEAF, 0);
	assert_null(f->flow.block);
	flow_begin_at(&f->run, BASE, 0);
	flow_fixture_expect(f, "CONTEXT(0) BEGIN(1020) BEGIN(1000)");
	assert_int_equal(f->batch.contexts[0].bits, 32);
	assert_int_equal(f->flow.addresses, 2);
	assert_false(f->flow.announced.at_fup || f->flow.announced.overflowed);
}

static void time_is_told_when_it_changes(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	flow_tell_time(&f->run);
	f->flow.cycles = 7;
	flow_tell_time(&f->run);
	flow_tell_time(&f->run);
	f->flow.clock.now += 100;
	f->flow.cycles = 9;
	flow_tell_time(&f->run);
	flow_fixture_expect(f, "TIME(7) TIME(2)");
}

static void who_wants_gaps_alone_gets_no_flow(void **state)
{
	struct flow_fixture *f = *state;

	flow_fixture_begin(f, BASE, true);
	flow_tell_time(&f->run);
	run_bits(f, 3, 2);
	assert_int_equal(flow_walk_to(&f->run, BEHIND), 0);
	flow_fixture_expect(f, "");
	assert_int_equal(f->flow.insns, 4);
	flow_take_branch(&f->run, BASE);
	flow_end_by_branch(&f->run, 0x9999);
	flow_fixture_expect(f, "TIME(0) GAP(2) AT(1000)");
}

static void code_is_that_of_the_thread_on_the_cpu(void **state)
{
	static const struct switch_entry switches[] = { { .time = 90, .settled = 100, .pid = 1 },
							{ .time = 190, .settled = 200, .pid = 2 } };
	struct flow_fixture *f = *state;

	f->config.conv = (struct time_conv){ .valid = true, .mult = 1 };
	f = begin_at(state, BASE);
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 7);
	f->flow.where.pid = -1;
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 0);
	f->flow.where.switches = switches;
	f->flow.where.switch_count = 2;
	f->flow.clock.now = 89;
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 0);
	f->flow.clock.now = 189;
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 1);
	f->flow.clock.now = 190; /* the switch itself runs no user code */
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 2);
	assert_int_equal(flow_space(&f->flow, kernel)->pid, -1);
	f->flow.where.pid = 7;
	assert_int_equal(flow_space(&f->flow, BASE)->pid, 7);
	assert_ptr_equal(flow_space(&f->flow, BASE)->machine, f->machines.host);
}

static void a_guest_has_code_of_its_own(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	f->flow.context.nr = true;
	f->flow.context.bits = 32;
	assert_ptr_equal(flow_space(&f->flow, BASE)->machine, f->machines.guests[0]);
	assert_int_equal(flow_space(&f->flow, BASE)->bits, 32);
}

static void only_code_that_was_read_is_known(void **state)
{
	struct flow_fixture *f = begin_at(state, BASE);

	assert_false(flow_knows_block(&f->flow));
	(void)flow_fixture_block(f, BASE);
	f->flow.state = FLOW_LOST;
	assert_false(flow_knows_block(&f->flow));
	f->flow.state = FLOW_RUNNING;
	assert_true(flow_knows_block(&f->flow));
	assert_int_equal(f->flow.block->ip, BASE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A kernel with a function that is traced, of which no copy has the trampoline (from KERNEL on):
 *	00 call 20; 05 jmp *%rax
 *	20 nop, which calls the trampoline; 25 je 27; 27 ret
 *	40 nop; 41 call 90; 46 jmp 60	what the trampoline is made of
 *	60 nop; 61 ret			by which it returns
 *	80 je 82; 82 ret		the tracer */
enum {
	FUNCTION = 0x20,
	TRAMPOLINE = 0x40,
	TRAMPOLINE_CALL = TRAMPOLINE + 1,
	TRAMPOLINE_END = 0x60,
	TRACER = 0x80,
};

struct traced {
	uint8_t code[0xa0];
	struct ftrace_site site;
	struct ftrace_table table;
	struct flow_patch patch;
};

static void make_traced(struct traced *traced, const struct machine *machine)
{
	*traced = (struct traced){ 0 };
	memset(traced->code, 0xcc, sizeof(traced->code));
	memcpy(traced->code, "\xe8\x1b\0\0\0\xff\xe0", 7);
	memcpy(traced->code + FUNCTION, "\x0f\x1f\x44\0\0\x74\0\xc3", 8);
	memcpy(traced->code + TRAMPOLINE, "\x90\xe8\x4a\0\0\0\xeb\x18", 8);
	memcpy(traced->code + TRAMPOLINE_END, "\x90\xc3", 2);
	memcpy(traced->code + TRACER, "\x74\0\xc3", 3);
	traced->site.ip = kernel + FUNCTION;
	traced->table = (struct ftrace_table){ .items = &traced->site,
					       .count = 1,
					       .from = kernel + TRAMPOLINE,
					       .to = kernel + TRAMPOLINE_END };
	traced->patch = (struct flow_patch){ .machine = machine, .until = UINT64_MAX };
	traced->patch.change.ftrace = (struct ftrace_change){
		.table = &traced->table,
		.tracer = { .address = kernel + TRACER,
			    .caller = kernel + TRAMPOLINE,
			    .call = kernel + TRAMPOLINE_CALL },
	};
}

/* The function is called while it is traced. */
static struct flow_fixture *begin_traced(void **state, const struct traced *traced, bool gaps_only)
{
	struct flow_fixture *f = *state;

	flow_fixture_code(f, kernel, traced->code, sizeof(traced->code));
	flow_fixture_begin(f, kernel, gaps_only);
	f->flow.patches.items[f->flow.patches.count++] = traced->patch;
	flow_patch_settle(&f->flow);
	return f;
}

static void what_stands_for_a_trampoline_is_left_out(void **state)
{
	struct flow_fixture *f = *state;
	struct traced traced;

	make_traced(&traced, f->machines.host);
	f = begin_traced(state, &traced, false);
	run_bits(f, 7, 4);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:2) "
			       "TO(0) GAP(7) AT(ffffffff81000040) "
			       "TO(ffffffff81000080) BLOCK(ffffffff81000080:1) "
			       "BLOCK(ffffffff81000082:1+) TO(0) GAP(7) AT(ffffffff81000046) "
			       "TO(ffffffff81000060) BLOCK(ffffffff81000060:2+) "
			       "TO(ffffffff81000025) BLOCK(ffffffff81000025:1+)");
}

/* A patch in there is tried where it ran. */
static void what_is_left_out_is_noted(void **state)
{
	const struct patch_change within = { .insn.site = kernel + TRAMPOLINE_CALL };
	const struct patch_change other = { .insn.site = kernel + 5 };
	struct flow_fixture *f = *state;
	struct met_sites sites = { 0 };
	struct traced traced;

	make_traced(&traced, f->machines.host);
	f = begin_traced(state, &traced, true);
	met_sites_begin(&sites, 1);
	f->flow.where.sites = &sites;
	run_bits(f, 7, 4);
	flow_fixture_expect(f, "GAP(7) AT(ffffffff81000040) GAP(7) AT(ffffffff81000046)");
	met_sites_settle(&sites);
	assert_true(met_sites_have(&sites, &within));
	assert_false(met_sites_have(&sites, &other));
	met_sites_free(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tip_says_where_an_indirect_branch_goes),
		TEST(only_a_return_undoes_a_call),
		TEST(where_code_ends_a_tip_begins_anew),
		TEST(a_return_by_tip_undoes_its_call),
		TEST(a_tip_at_a_conditional_branch_is_at_odds),
		TEST(nothing_but_a_fup_leads_away_from_an_undefined_instruction),
		TEST(a_far_transfer_changes_the_context_before_it_arrives),
		TEST(an_entry_that_no_pip_announces_has_failed),
		TEST(an_entry_goes_to_the_guest),
		TEST(bits_are_taken_oldest_first),
		TEST(a_bit_for_a_return_without_a_call_is_at_odds),
		TEST(a_return_is_always_taken),
		TEST(a_bit_for_a_far_transfer_is_at_odds),
		TEST(bits_behind_a_deferred_tip_are_for_later),
		TEST(code_that_is_not_there_is_a_gap),
		TEST(a_walk_ends_before_the_instruction),
		TEST(calls_on_the_way_are_remembered_as_far_as_they_ran),
		TEST(a_call_that_did_not_run_is_not_remembered),
		TEST(code_without_a_branch_is_walked_for_32768_instructions),
		TEST(no_walk_passes_a_branch_that_needs_a_packet),
		TEST(a_walk_that_never_ends_is_ended),
		TEST(no_kernel_runs_a_loop_that_never_ends),
		TEST(a_quick_walk_looks_at_no_code),
		TEST(tracing_ends_at_the_branch_that_goes_there),
		TEST(a_conditional_branch_goes_to_no_third_place),
		TEST(with_a_filter_it_may_have_left_without_telling),
		TEST(without_a_target_a_far_transfer_ended_it),
		TEST(or_what_can_switch_tracing_off),
		TEST(the_end_may_be_some_blocks_on),
		TEST(a_gap_forgets_where_the_flow_is),
		TEST(a_doubt_stays_until_it_is_settled),
		TEST(that_it_was_lost_and_found_is_logged),
		TEST(a_flow_with_a_log_knows_where_packets_agreed_last),
		TEST(tracing_begins_with_the_context_that_holds),
		TEST(time_is_told_when_it_changes),
		TEST(who_wants_gaps_alone_gets_no_flow),
		TEST(code_is_that_of_the_thread_on_the_cpu),
		TEST(a_guest_has_code_of_its_own),
		TEST(only_code_that_was_read_is_known),
		TEST(what_stands_for_a_trampoline_is_left_out),
		TEST(what_is_left_out_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
