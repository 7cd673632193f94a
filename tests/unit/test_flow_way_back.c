#include "decode/flow/flow_way_back.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/gap_fixture.h"

static void the_call_of_unknown_code_returns(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tnt(&fixture, 1, 3); /* not taken, not taken, return */
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x1000);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_AT, 0x9000), 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_BEGIN, 0x1005), 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_TO, 0x1007), GAP_ROUNDS);
	flow_fixture_deinit(&fixture.f);
}

static void it_returns_packets_later(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tnt(&fixture, 0, 1);
	gap_fixture_tnt(&fixture, 0, 3);
	gap_fixture_tnt(&fixture, 1, 2); /* not taken, return */
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x1000);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_BEGIN, 0x1005), 1);
	flow_fixture_deinit(&fixture.f);
}

/* How often unknown code returns where so many returns agree behind it, and no address. */
static unsigned found_by(unsigned returns)
{
	struct gap_fixture fixture;
	unsigned ret;

	gap_fixture_init(&fixture);
	gap_fixture_tnt(&fixture, 1, 3); /* not taken, not taken, return */
	gap_fixture_tnt(&fixture, 2, 2); /* return, not taken: behind no other return */
	gap_fixture_return(&fixture, returns);
	gap_fixture_follow(&fixture, 0x1010);
	ret = gap_fixture_count(&fixture, FLOW_BEGIN, 0x1015);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_TO, 0x1025), ret * returns);
	flow_fixture_deinit(&fixture.f);
	return ret;
}

static void returns_that_agree_are_as_good_as_addresses(void **state)
{
	assert_int_equal(found_by(20), 0);
	assert_int_equal(found_by(60), 1);
}

/* The TIP of an indirect branch may come behind the TNT packet. */
static void one_of_two_returns_is_not_chosen(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tnt(&fixture, 3, 2);
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x1000);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_BEGIN, 0x1005), 0);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_BEGIN, 0x1040), 1);
	flow_fixture_deinit(&fixture.f);
}

static void what_agrees_for_a_moment_is_not_believed(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tnt(&fixture, 1, 1);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 0, 2); /* no return is a branch that is not taken */
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x1000);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_BEGIN, 0x1005), 0);
	flow_fixture_deinit(&fixture.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_call_of_unknown_code_returns),
		cmocka_unit_test(it_returns_packets_later),
		cmocka_unit_test(returns_that_agree_are_as_good_as_addresses),
		cmocka_unit_test(one_of_two_returns_is_not_chosen),
		cmocka_unit_test(what_agrees_for_a_moment_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
