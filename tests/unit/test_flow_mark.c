#include "decode/flow/flow_mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flow/flow_packet.h"
#include "decode/flow/mismatch_log.h"
#include "tests/flow_fixture.h"

/* A kernel's loop, whose branch may be patched: 00 je 00; 02 nop. The trace goes round twice. */

enum { SIZE = 0x20, NOTE = 0x77 };

static const uint64_t base = 0xffffffff81000000;

static const uint8_t bytes[SIZE] = { 0x74, 0xfe, 0x90, 0x90 };

struct fixture {
	struct flow_fixture flow;
	struct flow_mark mark;
	struct flow_patches none, one;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture.flow);
	flow_fixture_code(&fixture.flow, base, bytes, sizeof(bytes));
	for (unsigned i = 0; i < 4; i++)
		pt_put(&fixture.flow.trace,
		       &(struct pt_packet){ .kind = PT_TNT, .payload = 1, .count = 1 });
	flow_fixture_begin(&fixture.flow, base, false);
	fixture.one.items[0] = (struct flow_patch){
		.machine = fixture.flow.machines.host,
		.change.insn = { .site = base, .to = base + 2, .bytes = { 0x66, 0x90 }, .size = 2 },
		.until = UINT64_MAX
	};
	fixture.one.count = 1;
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	flow_fixture_deinit(&f->flow);
	return 0;
}

/* The next TNT packet and its bit. */
static void step(struct fixture *f)
{
	assert_int_equal(flow_next(&f->flow.run), 0);
	while (f->flow.flow.tnt_count)
		assert_int_equal(flow_next(&f->flow.run), 0);
}

static void what_came_since_is_taken_back(void **state)
{
	struct fixture *f = *state;
	const struct pt_flow *flow = &f->flow.flow;

	step(f);
	return_stack_push(&f->flow.flow.calls, NOTE);
	f->flow.flow.next_context.cr3 = NOTE;
	flow_commit_context(&f->flow.run);
	flow_mark_set(&f->flow.run, &f->mark);
	assert_int_equal(f->mark.position, 1);
	flow_fixture_expect(&f->flow, "BLOCK(ffffffff81000000:1+) CONTEXT(0)");
	step(f);
	f->flow.flow.next_context.nr = true;
	flow_begin_at(&f->flow.run, base + 2, 0);
	flow_gap(&f->flow.run, GAP_MISMATCH, base);
	flow_mark_return(&f->flow.run, &f->mark, &f->none);
	flow_fixture_expect(&f->flow, "BLOCK(ffffffff81000000:1+) CONTEXT(0)");
	assert_int_equal(f->flow.batch.context_count, 1);
	assert_int_equal(flow->state, FLOW_RUNNING);
	assert_int_equal(flow->ip, base);
	assert_int_equal(flow->calls.count, 1);
	assert_int_equal(flow->gaps, 0);
	assert_false(flow->disagrees || flow->context.nr || flow->next_context.nr);
	assert_int_equal(pt_cursor_position(&flow->cursor), 1);
}

static void the_same_packets_lead_there_again(void **state)
{
	struct fixture *f = *state;
	uint32_t count;

	flow_mark_set(&f->flow.run, &f->mark);
	step(f);
	step(f);
	count = f->flow.batch.count;
	flow_mark_return(&f->flow.run, &f->mark, &f->none);
	assert_int_equal(f->flow.batch.count, 0);
	step(f);
	step(f);
	assert_int_equal(f->flow.batch.count, count);
	assert_int_equal(f->flow.flow.insns, 2);
}

static void other_patches_are_in_force_from_there(void **state)
{
	struct fixture *f = *state;
	struct pt_flow *flow = &f->flow.flow;

	step(f);
	flow_mark_set(&f->flow.run, &f->mark);
	step(f);
	flow_mark_return(&f->flow.run, &f->mark, &f->one);
	assert_int_equal(flow->patches.count, 1);
	assert_ptr_equal(flow->patches.code, &f->flow.code);
	assert_null(flow->block); /* it was read without them */
	assert_int_equal(f->flow.code.sites.count, 1);
	assert_int_equal(flow_walk_to(&f->flow.run, base + 2), 0);
	assert_int_equal(flow->ip, base + 2); /* past what is a NOP now */
}

static void patches_of_before_are_kept_by_the_mark(void **state)
{
	struct fixture *f = *state;

	flow_mark_return(&f->flow.run, &(struct flow_mark){ .flow = f->flow.flow }, &f->one);
	flow_mark_set(&f->flow.run, &f->mark);
	assert_int_equal(f->mark.flow.patches.count, 1);
	assert_int_equal(f->mark.flow.patches.items[0].change.insn.to, base + 2);
	f->one.items[0].change.insn.site = base + 3;
	flow_mark_return(&f->flow.run, &f->mark, &f->one);
	assert_int_equal(f->flow.code.sites.count, 2);
	flow_mark_return(&f->flow.run, &f->mark, &f->none);
	assert_int_equal(f->flow.flow.patches.count, 0);
}

/* What was learned, and how much was spent on it, stays. */
static void what_was_learned_is_not_taken_back(void **state)
{
	struct fixture *f = *state;
	struct pt_flow *flow = &f->flow.flow;

	flow->patches.work = 1000;
	flow_mark_set(&f->flow.run, &f->mark);
	flow->patches.work = 300;
	flow->learned.is_informed = true;
	flow->learned.modules.is_asked = true;
	flow->learned.modules.any = true;
	flow_mark_return(&f->flow.run, &f->mark, &f->one);
	assert_int_equal(flow->patches.work, 300);
	assert_true(flow->learned.is_informed);
	assert_true(flow->learned.modules.is_asked);
	assert_true(flow->learned.modules.any);
}

/* Nor does a log tell of what was taken back. */
static void what_came_since_is_not_in_the_log(void **state)
{
	struct fixture *f = *state;
	struct mismatch_log log = { 0 };

	f->flow.flow.where.log = &log;
	flow_gap(&f->flow.run, GAP_MISMATCH, base);
	flow_mark_set(&f->flow.run, &f->mark);
	flow_begin_at(&f->flow.run, base, 0);
	flow_gap(&f->flow.run, GAP_MISMATCH, base);
	assert_int_equal(log.count, 3);
	flow_mark_return(&f->flow.run, &f->mark, &f->none);
	assert_int_equal(log.count, 1);
	mismatch_log_free(&log);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_came_since_is_taken_back),
		TEST(the_same_packets_lead_there_again),
		TEST(other_patches_are_in_force_from_there),
		TEST(patches_of_before_are_kept_by_the_mark),
		TEST(what_was_learned_is_not_taken_back),
		TEST(what_came_since_is_not_in_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
