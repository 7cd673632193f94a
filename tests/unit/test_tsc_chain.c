#include "correlate/tsc_chain.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "correlate/tsc_run.h"
#include "decode/pt/pt_offsets.h"
#include "tests/flow_bench.h"

/* Events by hand; a tick of the crystal is 80 of the TSC (bench_skylake_x). */

enum { VMCS = 3, TICK = 80 };

static const uint64_t noon = 1000000000000;

static struct tsc_event event_at(int64_t count, uint16_t fast)
{
	return (struct tsc_event){ .kind = TSC_PACKET,
				   .vmcs = VMCS,
				   .have_tma = true,
				   .fast = fast,
				   .count = count,
				   .have_count = true };
}

/* A chain anchored where the crystal counted 100, 7 ticks before the TSC showed noon. */
static struct tsc_chain chain_at_noon(void)
{
	const struct tsc_event event = event_at(100, 7);
	struct tsc_chain chain = { 0 };

	tsc_chain_anchor(&chain, &event, noon);
	return chain;
}

static void assert_expects(const struct tsc_chain *chain, const struct tsc_event *event,
			   uint64_t expected)
{
	uint64_t tsc;

	assert_true(tsc_chain_expect(chain, event, &bench_skylake_x, &tsc));
	assert_int_equal(tsc, expected);
}

static void assert_expects_nothing(const struct tsc_chain *chain, const struct tsc_event *event,
				   const struct pt_config *config)
{
	uint64_t tsc;

	assert_false(tsc_chain_expect(chain, event, config, &tsc));
}

static void time_goes_on_by_the_crystal(void **state)
{
	const struct tsc_chain chain = chain_at_noon();
	const struct tsc_event later = event_at(110, 5), same = event_at(100, 7);

	assert_expects(&chain, &later, noon - 7 + 10 * TICK + 5);
	assert_expects(&chain, &same, noon);
}

static void a_count_may_slip_back(void **state)
{
	const struct tsc_chain chain = chain_at_noon();
	const struct tsc_event event = event_at(98, 0);

	assert_expects(&chain, &event, noon - 7 - 2 * TICK);
}

static void nothing_is_expected_of_nothing(void **state)
{
	const struct tsc_chain none = { 0 }, chain = chain_at_noon();
	const struct tsc_event event = event_at(110, 0);
	struct tsc_event uncounted = event;

	uncounted.have_count = false;
	assert_expects_nothing(&none, &event, &bench_skylake_x);
	assert_expects_nothing(&chain, &uncounted, &bench_skylake_x);
	assert_expects_nothing(&chain, &event, &(struct pt_config){ .ctc_n = TICK });
	assert_expects_nothing(&chain, &event, &(struct pt_config){ .ctc_d = 1 });
}

static void without_a_tma_there_is_no_anchor(void **state)
{
	struct tsc_event event = event_at(200, 1), later = event_at(110, 0);
	struct tsc_chain chain = { 0 };

	event.have_tma = false;
	tsc_chain_anchor(&chain, &event, noon);
	assert_false(chain.known);
	chain = chain_at_noon();
	tsc_chain_anchor(&chain, &event, 2 * noon);
	assert_expects(&chain, &later, noon - 7 + 10 * TICK);
}

static void a_new_anchor_takes_the_place_of_the_old(void **state)
{
	struct tsc_event event = event_at(100, 7), later = event_at(101, 0);
	struct tsc_chain chain = chain_at_noon();

	event.vmcs = VMCS + 1;
	tsc_chain_anchor(&chain, &event, 555555);
	assert_int_equal(chain.vmcs, VMCS + 1);
	assert_expects(&chain, &later, 555555 - 7 + TICK);
}

static void a_loss_is_known_until_the_next_anchor(void **state)
{
	struct tsc_chain chain = chain_at_noon();
	struct tsc_event lost = event_at(110, 0), next = event_at(120, 0);

	lost.lost = true;
	tsc_chain_step(&chain, &next);
	assert_false(chain.lost);
	tsc_chain_step(&chain, &lost);
	tsc_chain_step(&chain, &next);
	assert_true(chain.lost);
	assert_expects(&chain, &next, noon - 7 + 20 * TICK);
	tsc_chain_anchor(&chain, &next, noon);
	assert_false(chain.lost);
}

static void a_break_ends_the_chain(void **state)
{
	const struct tsc_event end = { .kind = TSC_BREAK }, next = event_at(120, 0);
	struct tsc_chain chain = chain_at_noon();

	tsc_chain_step(&chain, &end);
	assert_false(chain.known);
	assert_expects_nothing(&chain, &next, &bench_skylake_x);
}

static void a_stamp_is_extended_to_the_nearest_time(void **state)
{
	const uint64_t turn = PT_TSC_MASK + 1, near = 5 * turn + 10;

	assert_int_equal(tsc_near(12, near), near + 2);
	assert_int_equal(tsc_near(PT_TSC_MASK, near), near - 11);
	assert_int_equal(tsc_near(10 + turn / 2 - 1, near), near + turn / 2 - 1);
	assert_int_equal(tsc_near(10 + turn / 2, near), near - turn / 2);
	assert_int_equal(tsc_near(12, 0), 12);
}

static void the_time_about_an_event_is_expected_or_read_by_the_recorder(void **state)
{
	struct aux_span spans[] = { { .size = 100, .reference = noon + 1 },
				    { .size = 100, .position = 100, .reference = noon + 2 } };
	const struct aux_queue queue = { .spans = spans, .count = 2, .size = 200 };
	const struct aux_queue empty = { 0 };
	struct tsc_chain chain = chain_at_noon(), none = { 0 };
	struct tsc_event event = event_at(110, 7);
	const struct pt_config *config = &bench_skylake_x;

	event.position = 150;
	assert_int_equal(tsc_chain_about(&chain, &event, &queue, config), noon + 10 * TICK);
	assert_int_equal(tsc_chain_about(&none, &event, &queue, config), noon + 2);
	event.position = 99;
	assert_int_equal(tsc_chain_about(&none, &event, &queue, config), noon + 1);
	assert_int_equal(tsc_chain_about(&none, &event, &empty, config), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_goes_on_by_the_crystal),
		cmocka_unit_test(a_count_may_slip_back),
		cmocka_unit_test(nothing_is_expected_of_nothing),
		cmocka_unit_test(without_a_tma_there_is_no_anchor),
		cmocka_unit_test(a_new_anchor_takes_the_place_of_the_old),
		cmocka_unit_test(a_loss_is_known_until_the_next_anchor),
		cmocka_unit_test(a_break_ends_the_chain),
		cmocka_unit_test(a_stamp_is_extended_to_the_nearest_time),
		cmocka_unit_test(the_time_about_an_event_is_expected_or_read_by_the_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
