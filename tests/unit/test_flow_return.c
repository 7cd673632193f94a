#include "decode/flow/flow_return.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/gap_fixture.h"

static void a_function_returns_to_a_call_from_before_the_gap(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tip(&fixture, 0x9000); /* it jumps to 1040 */
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 3, 2);
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x1005);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_TO, 0x1007), GAP_ROUNDS + 1);
	flow_fixture_deinit(&fixture.f);
}

static void a_function_returns_to_where_it_did_before(void **state)
{
	struct return_sites *returns;
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	returns = &fixture.inference.returns;
	return_sites_note(returns, flow_fixture_block(&fixture.f, 0x1040), 0x1041);
	return_sites_note(returns, flow_fixture_block(&fixture.f, 0x1040), 0x1007);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 3, 2);
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x9000); /* where no code is */
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_TO, 0x1007), GAP_ROUNDS + 1);
	flow_fixture_deinit(&fixture.f);
}

/* How often a return goes where it was seen to go, with so many returns behind it and nothing else.
 */
static unsigned found_by(unsigned returns)
{
	struct gap_fixture fixture;
	unsigned ret;

	gap_fixture_init(&fixture);
	return_sites_note(&fixture.inference.returns, flow_fixture_block(&fixture.f, 0x1040),
			  0x1020);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_return(&fixture, 1 + returns);
	gap_fixture_follow(&fixture, 0x9000);
	ret = fixture.f.flow.ways_found;
	flow_fixture_deinit(&fixture.f);
	return ret;
}

static void returns_that_agree_are_as_good_as_addresses(void **state)
{
	assert_int_equal(found_by(3), 0);
	assert_int_equal(found_by(20), 1);
}

static void nothing_is_known_of_others(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 3, 2);
	gap_fixture_go_round(&fixture);
	gap_fixture_follow(&fixture, 0x9000);
	assert_true(fixture.f.flow.gaps > 1);
	assert_int_equal(gap_fixture_count(&fixture, FLOW_TO, 0x1007), 0);
	flow_fixture_deinit(&fixture.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_returns_to_a_call_from_before_the_gap),
		cmocka_unit_test(a_function_returns_to_where_it_did_before),
		cmocka_unit_test(returns_that_agree_are_as_good_as_addresses),
		cmocka_unit_test(nothing_is_known_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
