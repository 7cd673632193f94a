#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flow/flow_packet.h"
#include "decode/flow/mismatch_log.h"
#include "tests/flow_fixture.h"
#include "tests/sim_random.h"

/* The fast path over code that has been read, packet by packet; and beside the clear path, which
 * knows what is right:
 *	1000 je 1010; 1002 jmp *%rax
 *	1010 call 1020; 1015 jmp *%rax
 *	1020 je 1024; 1022 nop; 1023 nop; 1024 ret */
enum {
	BASE = 0x1000,
	BY_REGISTER = 0x1002,
	CALLER = 0x1010,
	BEHIND = 0x1015,
	CALLEE = 0x1020,
	NOPS = 0x1022,
	RETURN = 0x1024,
	UNREAD = 0x1040,
	NEVER = 1 << 30, /* a position */
	ALL_PADS = 4 * PT_WINDOW_SLACK,
};

static const uint8_t bytes[0x50] = {
	[0x00] = 0x74, 0x0e, 0xff,          0xe0, [0x10] = 0xe8, 0x0b, 0x00, 0x00,          0x00,
	0xff,          0xe0, [0x20] = 0x74, 0x02, 0x90,          0x90, 0xc3, [0x40] = 0xff, 0xe0,
};

static const uint16_t blocks[] = { BASE, BY_REGISTER, CALLER, BEHIND, CALLEE, NOPS, RETURN };

enum { BLOCKS = sizeof(blocks) / sizeof(*blocks) };

/* All but what is UNREAD has been read, and is linked where no packet tells the way. */
static void read_code(struct flow_fixture *f)
{
	for (size_t i = 0; i < BLOCKS; i++)
		(void)flow_fixture_block(f, blocks[i]);
	for (size_t i = 0; i < BLOCKS; i++) {
		struct block *block = flow_fixture_block(f, blocks[i]);

		if (block->end != BLOCK_CONDITIONAL)
			continue;
		block->successor[0] = flow_fixture_block(f, block->next);
		block->successor[1] = flow_fixture_block(f, block->target);
	}
}

static int set_up(void **state)
{
	static struct flow_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	flow_fixture_code(&fixture, BASE, bytes, sizeof(bytes));
	read_code(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

/* Branches, the oldest in the highest bit. */
static void put_tnt(struct flow_fixture *f, uint64_t bits, uint8_t count)
{
	pt_put(&f->trace, &(struct pt_packet){ .kind = PT_TNT, .payload = bits, .count = count });
}

static void put_tip(struct flow_fixture *f, uint64_t ip)
{
	pt_put_ip(&f->trace, PT_TIP, ip, PT_IP_AUTO);
}

static bool run_from(struct flow_fixture *f, uint64_t ip, uint64_t until)
{
	flow_fixture_begin(f, ip, false);
	return flow_run_fast(&f->run, until);
}

/* How much of the trace was read, without the PADs behind it. */
static uint64_t place_in_trace(const struct flow_fixture *f)
{
	uint64_t position = pt_cursor_position(&f->flow.cursor);
	uint64_t most = f->trace.size - ALL_PADS;

	return position < most ? position : most;
}

static void assert_all_read(const struct flow_fixture *f)
{
	assert_int_equal(place_in_trace(f), f->trace.size - ALL_PADS);
}

static void bits_lead_along_links(void **state)
{
	struct flow_fixture *f = *state;

	put_tnt(f, 2, 2);
	assert_false(run_from(f, BASE, NEVER));
	flow_fixture_expect(f, "BLOCK(1000:1+) BLOCK(1010:2)");
	assert_int_equal(f->flow.ip, NOPS);
	assert_int_equal(f->flow.block->ip, NOPS);
	assert_int_equal(f->flow.insns, 3);
	assert_int_equal(f->flow.calls.count, 1);
	assert_int_equal(f->flow.tnt_count, 0);
	assert_all_read(f);
}

static void bits_without_a_link_are_left_over(void **state)
{
	struct flow_fixture *f = *state;

	flow_fixture_block(f, BASE)->successor[0] = NULL;
	put_tnt(f, 5, 3);
	put_tnt(f, 0, 1);
	flow_fixture_begin(f, CALLEE, false);
	return_stack_push(&f->flow.calls, BASE);
	assert_false(flow_run_fast(&f->run, NEVER));
	flow_fixture_expect(f, "BLOCK(1020:1+)");
	assert_int_equal(f->flow.ip, RETURN);
	assert_int_equal(f->flow.tnt_count, 2);
	assert_int_equal(f->flow.tnt & 3, 1);
	assert_int_equal(place_in_trace(f), 1);
}

static void a_bit_returns_to_the_last_call(void **state)
{
	struct flow_fixture *f = *state;

	put_tnt(f, 7, 3);
	assert_false(run_from(f, BASE, NEVER));
	flow_fixture_expect(f, "BLOCK(1000:1+) BLOCK(1010:2+) BLOCK(1024:1+) TO(1015)");
	assert_int_equal(f->flow.ip, BEHIND);
	assert_int_equal(f->flow.calls.count, 0);
	assert_ptr_equal(flow_fixture_block(f, RETURN)->successor[1],
			 flow_fixture_block(f, BEHIND));
}

static void without_a_call_the_bit_of_a_return_is_left_over(void **state)
{
	struct flow_fixture *f = *state;

	put_tnt(f, 1, 1);
	assert_false(run_from(f, RETURN, NEVER));
	flow_fixture_expect(f, "");
	assert_int_equal(f->flow.tnt_count, 1);
	assert_int_equal(f->flow.ip, RETURN);
}

static void a_bit_that_denies_a_return_is_left_over(void **state)
{
	struct flow_fixture *f = *state;

	put_tnt(f, 0, 1);
	flow_fixture_begin(f, RETURN, false);
	return_stack_push(&f->flow.calls, BASE);
	assert_false(flow_run_fast(&f->run, NEVER));
	flow_fixture_expect(f, "");
	assert_int_equal(f->flow.tnt_count, 1);
	assert_int_equal(f->flow.calls.count, 1);
}

static void a_tip_leads_to_what_was_read(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, CALLER);
	put_tnt(f, 1, 1);
	assert_false(run_from(f, BY_REGISTER, NEVER));
	flow_fixture_expect(f, "BLOCK(1002:1+) TO(1010) BLOCK(1010:2+)");
	assert_int_equal(f->flow.addresses, 1);
	assert_int_equal(f->flow.told_ip, CALLER);
	assert_int_equal(f->flow.cursor.last_ip.ip, CALLER);
	assert_all_read(f);
}

static void a_tip_to_what_was_not_read_is_not_touched(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, CALLER);
	put_tnt(f, 1, 1);
	put_tip(f, BY_REGISTER);
	put_tip(f, UNREAD);
	assert_false(run_from(f, BY_REGISTER, NEVER));
	flow_fixture_expect(f, "BLOCK(1002:1+) TO(1010) BLOCK(1010:2+) BLOCK(1024:1+) TO(1002)");
	assert_int_equal(f->flow.cursor.last_ip.ip, BY_REGISTER);
	assert_int_equal(f->flow.calls.count, 0);
	assert_true(place_in_trace(f) < f->trace.size - ALL_PADS);
}

static void assert_stops(struct flow_fixture *f)
{
	put_tip(f, CALLER);
	flow_fixture_begin(f, BY_REGISTER, false);
	assert_true(flow_knows_block(&f->flow));
	assert_int_equal(flow_next(&f->run), 0);
	assert_false(flow_run_fast(&f->run, NEVER));
	flow_fixture_expect(f, "");
	pt_bytes_free(&f->trace);
	f->trace = (struct pt_bytes){ 0 };
}

/* The TIP behind them is of no branch. */
static void where_nobody_knows_where_it_is_nothing_is_taken(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP_PGE, 0, 0);
	assert_stops(f);
	pt_put_value(&f->trace, PT_TRACESTOP, 0);
	assert_stops(f);
}

static void a_tip_at_a_conditional_branch_is_not_touched(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, CALLER);
	assert_false(run_from(f, BASE, NEVER));
	flow_fixture_expect(f, "");
	assert_int_equal(place_in_trace(f), 0);
}

static void a_tip_without_an_address_is_not_touched(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP, 0, 0);
	assert_false(run_from(f, BY_REGISTER, NEVER));
	assert_int_equal(place_in_trace(f), 0);
}

static void any_other_packet_is_left_where_it_is(void **state)
{
	static const enum pt_packet_kind kinds[] = { PT_FUP, PT_OVF, PT_PSB, PT_TIP_PGE, PT_CBR };
	struct flow_fixture *f = *state;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		f->trace.size = 0;
		put_tnt(f, 0, 1);
		pt_put(&f->trace, &(struct pt_packet){ .kind = kinds[i], .count = 6 });
		put_tnt(f, 0, 1);
		assert_false(run_from(f, BASE, NEVER));
		flow_fixture_expect(f, "BLOCK(1000:1)");
		assert_int_equal(place_in_trace(f), 1);
	}
}

static void nothing_is_done_where_the_code_was_not_read(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, BASE);
	assert_false(run_from(f, UNREAD, NEVER));
	flow_fixture_expect(f, "");
	assert_int_equal(place_in_trace(f), 0);
}

static void nothing_is_done_in_the_midst_of_other_things(void **state)
{
	struct flow_fixture *f = *state;

	put_tnt(f, 0, 1);
	for (unsigned what = 0; what < 4; what++) {
		f->trace.size = 1;
		flow_fixture_begin(f, BASE, false);
		f->flow.announced.at_fup = what == 0;
		f->flow.announced.fup_is_plain = what == 1;
		f->flow.tnt_count = what == 2;
		f->flow.cursor.block = what == 3 ? PT_NO_BLOCK + 1 : PT_NO_BLOCK;
		assert_false(flow_run_fast(&f->run, NEVER));
		assert_int_equal(place_in_trace(f), 0);
	}
}

static void it_ends_at_its_position_where_an_address_is_told(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, BASE);
	put_tnt(f, 0, 1);
	put_tip(f, BASE);
	put_tnt(f, 0, 1);
	assert_true(run_from(f, BY_REGISTER, 4));
	flow_fixture_expect(f, "BLOCK(1002:1+) TO(1000) BLOCK(1000:1) BLOCK(1002:1+) TO(1000)");
	assert_int_equal(place_in_trace(f), 3 + 1 + 3);
	f->trace.size -= ALL_PADS;
	assert_true(run_from(f, BY_REGISTER, 0));
	flow_fixture_expect(f, "BLOCK(1002:1+) TO(1000)");
}

static void it_ends_where_the_batch_has_enough(void **state)
{
	struct flow_fixture *f = *state;

	for (unsigned i = 0; i < 100; i++) {
		put_tip(f, BASE);
		put_tnt(f, 0, 1);
	}
	f->batch.room = FLOW_MARGIN + 16; /* enough are 12 */
	assert_true(run_from(f, BY_REGISTER, NEVER));
	assert_int_equal(f->batch.count, 14);
	assert_int_equal(f->batch.items[13].kind, FLOW_TO);
}

static void it_leaves_off_where_the_batch_is_full(void **state)
{
	struct flow_fixture *f = *state;

	flow_fixture_block(f, CALLEE)->successor[0] = flow_fixture_block(f, CALLEE);
	for (unsigned i = 0; i < 100; i++)
		put_tnt(f, 0, 6);
	f->batch.room = FLOW_MARGIN + 16;
	assert_false(run_from(f, CALLEE, NEVER));
	assert_int_equal(f->batch.count, 18);
	assert_int_equal(place_in_trace(f), 3);
}

static void cycles_are_told_with_what_they_led_to(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_cyc_padded(&f->trace, 3, 1);
	pt_put_cyc_padded(&f->trace, 100, 2);
	put_tnt(f, 1, 1);
	pt_put_cyc_padded(&f->trace, 7, 1);
	assert_false(run_from(f, BASE, NEVER));
	flow_fixture_expect(f, "TIME(67) BLOCK(1000:1+)");
	assert_int_equal(f->flow.cycles, 110);
	assert_int_equal(f->flow.told.cycles, 103);
	assert_all_read(f);
}

static void a_long_cyc_is_left_where_it_is(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_cyc_padded(&f->trace, 1000000, 4);
	put_tnt(f, 1, 1);
	assert_false(run_from(f, BASE, NEVER));
	assert_int_equal(place_in_trace(f), 0);
	assert_int_equal(f->flow.cycles, 0);
}

static void mtcs_move_the_clock(void **state)
{
	const struct pt_tsc_group group = { .tsc = 1000000, .have_tma = true, .ctc = 0 };
	struct flow_fixture *f = *state;

	pt_put_value(&f->trace, PT_MTC, 1); /* 8 ticks of the crystal */
	put_tnt(f, 1, 1);
	flow_fixture_begin(f, BASE, false);
	pt_clock_tsc(&f->flow.clock, &group);
	f->flow.told.time = f->flow.clock.now;
	assert_false(flow_run_fast(&f->run, NEVER));
	flow_fixture_expect(f, "TIME(0) BLOCK(1000:1+)");
	assert_int_equal(f->batch.items[0].value, 1000000 + 8 * 80);
}

static void tracing_that_ends_and_begins_elsewhere_goes_on(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP_PGD, 0x9000, PT_IP_AUTO);
	pt_put_ip(&f->trace, PT_TIP_PGE, BASE, PT_IP_AUTO);
	put_tnt(f, 1, 1);
	assert_false(run_from(f, BY_REGISTER, NEVER));
	flow_fixture_expect(f, "BLOCK(1002:1+) END(9000) BEGIN(1000) BLOCK(1000:1+)");
	assert_all_read(f);
}

static void tracing_that_only_ends_leaves_off(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP_PGD, 0x9000, PT_IP_AUTO);
	put_tnt(f, 1, 1);
	assert_false(run_from(f, BY_REGISTER, NEVER));
	flow_fixture_expect(f, "BLOCK(1002:1+) END(9000)");
	assert_int_equal(f->flow.state, FLOW_DISABLED);
	assert_true(place_in_trace(f) < f->trace.size - ALL_PADS);
}

static void an_end_at_odds_with_the_code_is_for_others_to_settle(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP_PGD, 0x9000, PT_IP_AUTO);
	pt_put_ip(&f->trace, PT_TIP_PGE, BASE, PT_IP_AUTO);
	assert_true(run_from(f, BASE, NEVER));
	assert_true(flow_is_in_doubt(&f->flow));
	assert_true(place_in_trace(f) < f->trace.size - ALL_PADS);
}

/* Packets that fit the code, mostly: of any kind that the fast path takes, and some others. */
static void put_some(struct flow_fixture *f, struct sim_random *random)
{
	for (unsigned i = 0; i < 40; i++) {
		switch (sim_random_below(random, 9)) {
		case 0: pt_put_cyc_padded(&f->trace, sim_random_below(random, 32), 1); break;
		case 1: pt_put_cyc_padded(&f->trace, sim_random_below(random, 4096), 2); break;
		case 2: pt_put_value(&f->trace, PT_MTC, i); break;
		case 3:
		case 4: put_tip(f, blocks[sim_random_below(random, BLOCKS)]); break;
		case 5:
			if (i % 8)
				break;
			pt_put_ip(&f->trace, PT_TIP_PGD, 0x9000, PT_IP_AUTO);
			pt_put_bytes(&f->trace, "\0", i % 16 ? 1 : 0);
			pt_put_ip(&f->trace, PT_TIP_PGE, BASE, PT_IP_AUTO);
			break;
		case 6: pt_put_bytes(&f->trace, "\0\0", 1 + i % 2); break;
		default: {
			uint8_t count = (uint8_t)(1 + sim_random_below(random, 6));

			put_tnt(f, sim_random_next(random) & ((1u << count) - 1), count);
		}
		}
	}
}

/* Go on to the end by the clear path, or by the fast path as far as it goes. */
static void go_on(struct flow_fixture *f, bool fast)
{
	do {
		if (fast && f->flow.state == FLOW_RUNNING)
			(void)flow_run_fast(&f->run, NEVER);
	} while (!flow_next(&f->run));
}

/* Everything, `depth` calls deep. */
static void run_all(struct flow_fixture *f, uint64_t depth, bool fast, bool gaps_only)
{
	flow_fixture_begin(f, BASE, gaps_only);
	f->trace.size -= ALL_PADS;
	for (uint64_t i = 0; i < depth; i++)
		return_stack_push(&f->flow.calls, BEHIND);
	go_on(f, fast);
}

static void assert_same_flow(const struct pt_flow *a, const struct pt_flow *b)
{
	assert_int_equal(a->insns, b->insns);
	assert_int_equal(a->addresses, b->addresses);
	assert_int_equal(a->gaps, b->gaps);
	assert_int_equal(a->cycles, b->cycles);
	assert_int_equal(a->clock.now, b->clock.now);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->ip, b->ip);
	assert_int_equal(a->calls.count, b->calls.count);
	assert_int_equal(a->calls.top % RETURN_STACK, b->calls.top % RETURN_STACK);
}

static bool is_same_item(const struct flow_item *a, const struct flow_item *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->count == b->count &&
	       a->value == b->value;
}

enum { ENDS = 256 };

/* Where the batches of a trace end, of a few items each. Returns how many they are. */
static unsigned find_ends(struct flow_fixture *f, bool is_linked, uint64_t ret[ENDS])
{
	unsigned count = 0;

	for (size_t i = 0; i < BLOCKS && !is_linked; i++)
		memset(flow_fixture_block(f, blocks[i])->successor, 0,
		       sizeof(flow_fixture_block(f, blocks[i])->successor));
	flow_fixture_begin(f, BASE, false);
	f->trace.size -= ALL_PADS;
	f->batch.room = FLOW_MARGIN + 8;
	while (!pt_flow_run(&f->flow, &f->batch)) {
		assert_true(count < ENDS);
		ret[count++] = pt_cursor_position(&f->flow.cursor);
	}
	return count;
}

/* What explains a disagreement is looked for from the end of a batch on. So it must not matter what
 * the thread has read before. */
static void batches_end_where_they_do_without_links(void **state)
{
	struct flow_fixture *f = *state;
	uint64_t clear[ENDS], fast[ENDS];

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct sim_random random = { seed };
		unsigned count;

		f->trace.size = 0;
		f->trace.last_ip = 0;
		put_some(f, &random);
		count = find_ends(f, false, clear);
		assert_int_equal(find_ends(f, true, fast), count);
		assert_memory_equal(clear, fast, count * sizeof(*clear));
	}
}

static void both_paths_find_the_same(void **state)
{
	static struct flow_batch clear_batch;
	static struct pt_flow clear;
	struct flow_fixture *f = *state;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct sim_random random = { seed };

		f->trace.size = 0;
		f->trace.last_ip = 0;
		put_some(f, &random);
		run_all(f, seed % (RETURN_STACK + 1), false, false);
		clear = f->flow;
		memcpy(&clear_batch, &f->batch, sizeof(clear_batch));
		run_all(f, seed % (RETURN_STACK + 1), true, false);
		assert_same_flow(&f->flow, &clear);
		assert_int_equal(f->batch.count, clear_batch.count);
		for (uint32_t i = 0; i < f->batch.count; i++)
			assert_true(is_same_item(&f->batch.items[i], &clear_batch.items[i]));
	}
}

static void counting_gaps_alone_finds_the_same(void **state)
{
	static struct pt_flow clear;
	struct flow_fixture *f = *state;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct sim_random random = { seed };

		f->trace.size = 0;
		f->trace.last_ip = 0;
		put_some(f, &random);
		run_all(f, seed % (RETURN_STACK + 1), false, false);
		clear = f->flow;
		run_all(f, seed % (RETURN_STACK + 1), true, true);
		assert_same_flow(&f->flow, &clear);
		for (uint32_t i = 0; i < f->batch.count; i++)
			assert_true(f->batch.items[i].kind != FLOW_BLOCK &&
				    f->batch.items[i].kind != FLOW_TO);
	}
}

static void run_logged(struct flow_fixture *f, bool fast, struct mismatch_log *log)
{
	flow_fixture_begin(f, BASE, true);
	f->trace.size -= ALL_PADS;
	f->flow.where.log = log;
	go_on(f, fast);
}

static void a_log_has_the_same(void **state)
{
	struct mismatch_log clear = { 0 }, fast = { 0 };
	struct flow_fixture *f = *state;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct sim_random random = { seed };

		f->trace.size = 0;
		f->trace.last_ip = 0;
		put_some(f, &random);
		run_logged(f, false, &clear);
		run_logged(f, true, &fast);
	}
	assert_true(clear.count > 400);
	assert_int_equal(clear.count, fast.count);
	for (size_t i = 0; i < clear.count; i++) {
		assert_int_equal(clear.items[i].kind, fast.items[i].kind);
		assert_int_equal(clear.items[i].position, fast.items[i].position);
		assert_int_equal(clear.items[i].agreed, fast.items[i].agreed);
	}
	mismatch_log_free(&clear);
	mismatch_log_free(&fast);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bits_lead_along_links),
		TEST(bits_without_a_link_are_left_over),
		TEST(a_bit_returns_to_the_last_call),
		TEST(without_a_call_the_bit_of_a_return_is_left_over),
		TEST(a_bit_that_denies_a_return_is_left_over),
		TEST(a_tip_leads_to_what_was_read),
		TEST(a_tip_to_what_was_not_read_is_not_touched),
		TEST(where_nobody_knows_where_it_is_nothing_is_taken),
		TEST(a_tip_at_a_conditional_branch_is_not_touched),
		TEST(a_tip_without_an_address_is_not_touched),
		TEST(any_other_packet_is_left_where_it_is),
		TEST(nothing_is_done_where_the_code_was_not_read),
		TEST(nothing_is_done_in_the_midst_of_other_things),
		TEST(it_ends_at_its_position_where_an_address_is_told),
		TEST(it_ends_where_the_batch_has_enough),
		TEST(it_leaves_off_where_the_batch_is_full),
		TEST(cycles_are_told_with_what_they_led_to),
		TEST(a_long_cyc_is_left_where_it_is),
		TEST(mtcs_move_the_clock),
		TEST(tracing_that_ends_and_begins_elsewhere_goes_on),
		TEST(tracing_that_only_ends_leaves_off),
		TEST(an_end_at_odds_with_the_code_is_for_others_to_settle),
		TEST(batches_end_where_they_do_without_links),
		TEST(both_paths_find_the_same),
		TEST(counting_gaps_alone_finds_the_same),
		TEST(a_log_has_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
