#include "decode/flow/flow_guess.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/gap_fixture.h"

/* Ready to follow what the trace has from `ip`. */
static struct pt_flow *begin(struct gap_fixture *fixture, uint64_t ip)
{
	flow_fixture_begin(&fixture->f, ip, false);
	fixture->f.flow.where.inference = &fixture->inference;
	return &fixture->f.flow;
}

static struct guess_outcome follow(struct gap_fixture *fixture, uint64_t ip)
{
	struct pt_flow *flow = begin(fixture, ip), trial;
	struct flow_guess *guess = flow_guess_new(flow, &flow->return_steps, &trial);
	struct guess_outcome ret;

	assert_non_null(guess);
	ret = flow_guess_follow(guess, &trial);
	assert_true(flow_guess_end(guess));
	assert_int_equal(fixture->f.batch.count, 0);
	assert_int_equal(flow->ip, ip);
	patch_inference_free(&fixture->inference);
	flow_fixture_deinit(&fixture->f);
	return ret;
}

static void what_packets_agree_with_for_long_is_right(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_go_round(&fixture);
	assert_int_equal(follow(&fixture, 0x1005).verdict, GUESS_AGREES);
}

static void returns_that_agree_for_long_are_right(void **state)
{
	struct guess_outcome outcome;
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_return(&fixture, 12);
	outcome = follow(&fixture, 0x1020);
	assert_int_equal(outcome.verdict, GUESS_OPEN);
	assert_int_equal(outcome.returns, 12);
	gap_fixture_init(&fixture);
	gap_fixture_return(&fixture, 120);
	outcome = follow(&fixture, 0x1020);
	assert_int_equal(outcome.verdict, GUESS_AGREES);
	assert_int_equal(outcome.told, 0);
}

static void a_disagreement_refutes(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 0, 1); /* no return is a branch that is not taken */
	gap_fixture_go_round(&fixture);
	assert_int_equal(follow(&fixture, 0x1005).verdict, GUESS_REFUTED);
}

static void code_that_is_not_known_proves_nothing(void **state)
{
	struct guess_outcome outcome;
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	gap_fixture_tip(&fixture, 0x1040);
	gap_fixture_tnt(&fixture, 2, 2);
	gap_fixture_tip(&fixture, 0x9000);
	gap_fixture_go_round(&fixture);
	outcome = follow(&fixture, 0x1005);
	assert_int_equal(outcome.verdict, GUESS_OPEN);
	assert_int_equal(outcome.told, 2);
}

/* A function was seen to return there. */
static void note(struct gap_fixture *fixture, uint64_t ret, uint64_t to)
{
	return_sites_note(&fixture->inference.returns, flow_fixture_block(&fixture->f, ret), to);
}

/* What comes of trying where the function at 1040 returns to. */
static struct guess_outcome try_return(struct gap_fixture *fixture, struct return_place *place)
{
	struct pt_flow *flow = begin(fixture, 0x1040), trial;
	struct flow_guess *guess = flow_guess_new(flow, &flow->return_steps, &trial);
	struct guess_outcome ret;

	assert_int_equal(flow_guess_follow(guess, &trial).verdict, GUESS_OPEN);
	assert_int_equal(trial.state, FLOW_AT_RETURN);
	ret = flow_guess_return(guess, &trial, place);
	assert_true(flow_guess_end(guess));
	patch_inference_free(&fixture->inference);
	flow_fixture_deinit(&fixture->f);
	return ret;
}

static void a_return_to_an_unknown_call_is_tried_next(void **state)
{
	struct return_place place;
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	note(&fixture, 0x1040, 0x1007);
	gap_fixture_tnt(&fixture, 3, 2);
	gap_fixture_go_round(&fixture);
	assert_int_equal(try_return(&fixture, &place).verdict, GUESS_AGREES);
	assert_int_equal(place.ip, 0x1007);
}

/* 1040 returns to 1030, and that to where nobody saw it return. */
static void the_next_return_may_go_to_no_known_place(void **state)
{
	struct guess_outcome outcome;
	struct return_place place;
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	note(&fixture, 0x1040, 0x1030);
	note(&fixture, 0x1035, 0x1040);
	gap_fixture_return(&fixture, 3);
	gap_fixture_tnt(&fixture, 0, 1);
	outcome = try_return(&fixture, &place);
	assert_int_equal(outcome.verdict, GUESS_OPEN);
	assert_int_equal(outcome.returns, 1);
	assert_int_equal(place.ip, 0x1030);
}

/* 1040 returns to 1030, and that to where no code is, so that the next address is right, or where
 * one before that agrees, too. */
static void of_places_that_are_alike_the_least_counts(void **state)
{
	for (int is_first = 0; is_first < 2; is_first++) {
		struct guess_outcome outcome;
		struct return_place place;
		struct gap_fixture fixture;

		gap_fixture_init(&fixture);
		note(&fixture, 0x1040, 0x1030);
		note(&fixture, 0x1035, is_first ? 0x1005 : 0x9000);
		note(&fixture, 0x1035, is_first ? 0x9000 : 0x1005);
		gap_fixture_return(&fixture, 3);
		gap_fixture_tip(&fixture, 0x1040);
		gap_fixture_tnt(&fixture, 2, 2);
		gap_fixture_tip(&fixture, 0x9000);
		outcome = try_return(&fixture, &place);
		assert_int_equal(outcome.verdict, GUESS_OPEN);
		assert_int_equal(outcome.told, 1);
		assert_int_equal(outcome.returns, 1);
		assert_int_equal(place.ip, 0x1030);
	}
}

static void what_is_tried_is_limited(void **state)
{
	struct gap_fixture fixture;
	struct flow_guess *guess;
	struct pt_flow *flow, trial;

	gap_fixture_init(&fixture);
	gap_fixture_go_round(&fixture);
	flow = begin(&fixture, 0x1005);
	flow->return_steps = 3;
	guess = flow_guess_new(flow, &flow->return_steps, &trial);
	assert_int_equal(flow_guess_follow(guess, &trial).verdict, GUESS_OPEN);
	assert_false(flow_guess_end(guess));
	assert_int_equal(flow->return_steps, 0);
	assert_false(flow_guess_is_allowed(flow));
	patch_inference_free(&fixture.inference);
	flow_fixture_deinit(&fixture.f);
}

/* How many steps it takes to follow packets that say so much, where so many bytes of code fit. */
static uint64_t steps_where(size_t most_bytes)
{
	struct gap_fixture fixture;
	struct flow_guess *guess;
	struct pt_flow *flow, trial;
	uint64_t ret;

	gap_fixture_init(&fixture);
	gap_fixture_go_round(&fixture);
	fixture.f.code.most_bytes = most_bytes;
	flow = begin(&fixture, 0x1005);
	ret = flow->return_steps;
	guess = flow_guess_new(flow, &flow->return_steps, &trial);
	(void)flow_guess_follow(guess, &trial);
	assert_true(flow_guess_end(guess));
	ret -= flow->return_steps;
	patch_inference_free(&fixture.inference);
	flow_fixture_deinit(&fixture.f);
	return ret;
}

static void how_much_code_fits_makes_no_difference(void **state)
{
	assert_int_equal(steps_where(0), steps_where(SIZE_MAX));
}

static void a_trial_tries_nothing(void **state)
{
	struct patch_inference inference;
	static struct pt_flow flow;

	assert_false(flow_guess_is_allowed(&flow));
	flow.where.inference = &inference;
	flow.return_steps = 1;
	assert_true(flow_guess_is_allowed(&flow));
	flow.trial = FLOW_TRIES_PATCHES;
	assert_false(flow_guess_is_allowed(&flow));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_packets_agree_with_for_long_is_right),
		cmocka_unit_test(returns_that_agree_for_long_are_right),
		cmocka_unit_test(a_disagreement_refutes),
		cmocka_unit_test(code_that_is_not_known_proves_nothing),
		cmocka_unit_test(a_return_to_an_unknown_call_is_tried_next),
		cmocka_unit_test(the_next_return_may_go_to_no_known_place),
		cmocka_unit_test(of_places_that_are_alike_the_least_counts),
		cmocka_unit_test(what_is_tried_is_limited),
		cmocka_unit_test(how_much_code_fits_makes_no_difference),
		cmocka_unit_test(a_trial_tries_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
