#include "decode/flow/mismatch_log.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Logs written by hand: places are 1000 bytes and 1000 ticks apart. */

struct logs {
	struct mismatch_log without, with, unclear;
};

static struct mismatch event_at(enum mismatch_kind kind, uint64_t place)
{
	return (struct mismatch){ .kind = kind,
				  .position = place * 1000,
				  .agreed = place * 1000 - 500,
				  .time = place * 1000 };
}

/* Lost at a place, and found again 100 bytes later. */
static void lose(struct mismatch_log *log, uint64_t place)
{
	struct mismatch event = event_at(MISMATCH_LOST, place);

	mismatch_log_add(log, event);
	event.kind = MISMATCH_FOUND;
	event.position += 100;
	mismatch_log_add(log, event);
}

static void lose_all(struct mismatch_log *log, uint64_t from, uint64_t to)
{
	for (uint64_t place = from; place < to; place++)
		lose(log, place);
}

static void be_odd(struct mismatch_log *log, uint64_t place, uint64_t to)
{
	struct mismatch event = event_at(MISMATCH_ODD, place);

	event.from = 1;
	event.to = to;
	mismatch_log_add(log, event);
}

static void finish(struct logs *logs)
{
	mismatch_log_free(&logs->without);
	mismatch_log_free(&logs->with);
	mismatch_log_free(&logs->unclear);
}

static struct mismatch_verdict verdict_of(struct logs *logs)
{
	struct mismatch_verdict verdict;

	assert_int_equal(
		mismatch_log_compare(&logs->without, &logs->with, &logs->unclear, &verdict), 0);
	finish(logs);
	return verdict;
}

static void assert_always(const struct mismatch_verdict *verdict, uint32_t gone, uint32_t against)
{
	assert_int_equal(verdict->since, 0);
	assert_int_equal(verdict->until, UINT64_MAX);
	assert_int_equal(verdict->gone, gone);
	assert_int_equal(verdict->against, against);
}

static void a_right_patch_makes_disagreements_go(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose_all(&logs.without, 1, 11);
	lose(&logs.with, 4);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 9, 0);
	assert_int_equal(verdict.odd, 0);
}

static void what_is_new_speaks_against_it(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose_all(&logs.without, 1, 11);
	lose(&logs.with, 20);
	be_odd(&logs.with, 21, 2);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 10, 1);
	assert_int_equal(verdict.odd, 1);
}

static void one_place_counts_once(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	for (unsigned i = 0; i < 5; i++) {
		mismatch_log_add(&logs.without, (struct mismatch){ .kind = MISMATCH_LOST,
								   .position = 5000 + i * 5 });
		mismatch_log_add(&logs.with, (struct mismatch){ .kind = MISMATCH_ODD,
								.position = 9000 + i * 5,
								.to = i });
	}
	logs.without.items[4].kind = MISMATCH_FOUND; /* it is lost only up to here */
	verdict = verdict_of(&logs);
	assert_always(&verdict, 1, 0);
	assert_int_equal(verdict.odd, 1);
}

/* A loop takes whatever bits there are, until an address is told. */
static void what_is_passed_without_agreement_is_not_gone(void **state)
{
	struct logs logs = { 0 };
	struct mismatch event = event_at(MISMATCH_LOST, 8);
	struct mismatch_verdict verdict;

	lose_all(&logs.without, 1, 11);
	event.agreed = 4100;
	mismatch_log_add(&logs.with, event);
	event.kind = MISMATCH_FOUND;
	mismatch_log_add(&logs.with, event);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 6, 0); /* 1 to 4, 9, 10 */
}

/* A flow that is lost at a place cannot contradict the other there. */
static void where_the_other_was_lost_nothing_is_said(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose(&logs.without, 1);
	mismatch_log_add(&logs.without, event_at(MISMATCH_LOST, 2));
	mismatch_log_add(&logs.without, event_at(MISMATCH_FOUND, 6));
	lose(&logs.with, 4);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 2, 0);
}

/* Nor does it explain what it did not come to. */
static void what_a_flow_that_is_lost_does_not_meet_is_not_gone(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose(&logs.without, 1);
	be_odd(&logs.without, 4, 7);
	mismatch_log_add(&logs.with, event_at(MISMATCH_LOST, 2));
	mismatch_log_add(&logs.with, event_at(MISMATCH_FOUND, 6));
	verdict = verdict_of(&logs);
	assert_always(&verdict, 1, 1);
}

static void where_the_flow_was_lost_is_told(void **state)
{
	struct logs logs = { 0 };

	be_odd(&logs.without, 1, 7);
	logs.without.segment = 2;
	lose(&logs.without, 3);
	assert_false(mismatch_log_is_at_odds(&logs.without, 0));
	assert_false(mismatch_log_is_at_odds(&logs.without, 1));
	assert_true(mismatch_log_is_at_odds(&logs.without, 2));
	assert_false(mismatch_log_is_at_odds(&logs.without, 3));
	finish(&logs);
}

static void code_that_is_not_what_packets_tell_is_counted(void **state)
{
	struct mismatch event = event_at(MISMATCH_LOST, 5);
	struct logs logs = { 0 };

	lose(&logs.without, 1);
	be_odd(&logs.without, 3, 7);
	event.from = 1;
	mismatch_log_add(&logs.without, event);
	assert_int_equal(mismatch_log_against(&logs.without), 1);
	finish(&logs);
}

/* What is not gone through again is as it was. */
static void a_segment_of_another_log_can_be_taken_over(void **state)
{
	struct logs logs = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		logs.without.segment = i;
		lose_all(&logs.without, 10 * i, 10 * i + 2);
	}
	logs.with.segment = 1;
	mismatch_log_add_from(&logs.with, &logs.without);
	assert_int_equal(logs.with.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(logs.with.items[i].segment, 1);
	assert_int_equal(logs.with.items[0].position, event_at(MISMATCH_LOST, 10).position);
	assert_int_equal(logs.with.items[3].kind, MISMATCH_FOUND);
	finish(&logs);
}

/* Segments that are in only one log, or differ, are all looked at. */
static void segments_are_compared_with_each_other(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	for (unsigned i = 0; i < 6; i++) {
		logs.without.segment = logs.with.segment = i;
		if (i != 3)
			lose(&logs.without, 10 * i);
		if (i != 4)
			lose(&logs.with, 10 * i + (i == 5));
		be_odd(&logs.without, 10 * i + 3, 7);
		be_odd(&logs.with, 10 * i + 3, 7);
	}
	verdict = verdict_of(&logs);
	assert_always(&verdict, 2, 2);
	assert_int_equal(verdict.odd, 0);
}

static void branches_that_are_odd_anyway_do_not_count(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose(&logs.without, 1);
	be_odd(&logs.without, 3, 7);
	be_odd(&logs.with, 3, 7);
	be_odd(&logs.with, 5, 7);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 1, 0);
	assert_int_equal(verdict.odd, 0);
}

/* Where the flow was lost it now takes the odd branches that it takes elsewhere; or new ones. */
static void what_is_odd_anyway_may_come_where_the_flow_was_lost(void **state)
{
	for (unsigned is_new = 0; is_new < 2; is_new++) {
		struct logs logs = { 0 };
		struct mismatch_verdict verdict;

		lose_all(&logs.without, 1, 4);
		be_odd(&logs.without, 5, 7);
		for (uint64_t place = 1; place < 4; place++)
			be_odd(&logs.with, place, is_new ? 8 : 7);
		be_odd(&logs.with, 5, 7);
		verdict = verdict_of(&logs);
		assert_always(&verdict, is_new ? 0 : 3, 0);
		assert_int_equal(verdict.odd, 0);
	}
}

/* So does what speaks against the patch. */
static void what_is_odd_anyway_hides_nothing_new(void **state)
{
	for (unsigned is_gone = 0; is_gone < 2; is_gone++) {
		struct logs logs = { 0 };
		struct mismatch_verdict verdict;

		lose(&logs.without, 0);
		for (uint64_t place = 1; place < 4; place++) {
			be_odd(&logs.without, place, is_gone ? 8 : 7);
			be_odd(&logs.with, place, 7);
			lose(&logs.with, place);
		}
		lose(&logs.without, 9);
		verdict = verdict_of(&logs);
		assert_int_equal(verdict.against, is_gone ? 0 : 3);
	}
}

static void sources_are_apart(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose(&logs.without, 1);
	logs.without.source = 1;
	lose(&logs.without, 1);
	logs.with.source = 1;
	lose(&logs.with, 1);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 1, 0);
}

static void a_patch_may_hold_from_some_time_on(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose_all(&logs.with, 1, 31);
	lose_all(&logs.without, 31, 61);
	verdict = verdict_of(&logs);
	assert_int_equal(verdict.since, 30001);
	assert_int_equal(verdict.until, UINT64_MAX);
	assert_int_equal(verdict.gone, 30);
	assert_int_equal(verdict.against, 0);
}

static void and_until_some_time(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose_all(&logs.with, 1, 31);
	lose_all(&logs.without, 31, 61);
	lose_all(&logs.with, 61, 91);
	verdict = verdict_of(&logs);
	assert_int_equal(verdict.since, 30001);
	assert_int_equal(verdict.until, 61000);
	assert_int_equal(verdict.gone, 30);
	assert_int_equal(verdict.against, 0);
}

/* Evidence for and against a form in the same time gives no time in which it held. */
static void mixed_evidence_makes_no_time(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	for (uint64_t place = 1; place < 61; place += 2) {
		lose(&logs.without, place);
		lose(&logs.with, place + 1);
	}
	verdict = verdict_of(&logs);
	assert_always(&verdict, 30, 30);
}

static void without_time_a_patch_holds_always(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	lose_all(&logs.with, 1, 31);
	lose_all(&logs.without, 31, 61);
	for (size_t i = 0; i < logs.with.count; i++)
		logs.with.items[i].time = logs.without.items[i].time = 0;
	verdict = verdict_of(&logs);
	assert_always(&verdict, 30, 30);
}

static void places_that_others_explain_say_nothing(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;
	struct mismatch_log other = { 0 };

	lose_all(&logs.without, 1, 11);
	lose_all(&other, 6, 11);
	mismatch_log_add_gone(&logs.without, &other, &logs.unclear);
	mismatch_log_free(&other);
	verdict = verdict_of(&logs);
	assert_always(&verdict, 5, 0);
}

static void a_log_that_is_cut_says_nothing(void **state)
{
	struct logs logs = { 0 };
	struct mismatch_verdict verdict;

	for (uint64_t place = 1; place <= MISMATCH_LOG_MAX + 1; place++)
		mismatch_log_add(&logs.with, event_at(MISMATCH_LOST, place));
	assert_true(logs.with.is_cut);
	mismatch_log_add_from(&logs.unclear, &logs.with); /* so are those with parts of it */
	assert_true(logs.unclear.is_cut);
	mismatch_log_clear(&logs.unclear);
	assert_true(mismatch_log_compare(&logs.without, &logs.with, &logs.unclear, &verdict) < 0);
	mismatch_log_clear(&logs.with);
	assert_false(logs.with.is_cut);
	finish(&logs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_patch_makes_disagreements_go),
		cmocka_unit_test(what_is_new_speaks_against_it),
		cmocka_unit_test(one_place_counts_once),
		cmocka_unit_test(what_is_passed_without_agreement_is_not_gone),
		cmocka_unit_test(where_the_other_was_lost_nothing_is_said),
		cmocka_unit_test(what_a_flow_that_is_lost_does_not_meet_is_not_gone),
		cmocka_unit_test(where_the_flow_was_lost_is_told),
		cmocka_unit_test(code_that_is_not_what_packets_tell_is_counted),
		cmocka_unit_test(a_segment_of_another_log_can_be_taken_over),
		cmocka_unit_test(segments_are_compared_with_each_other),
		cmocka_unit_test(branches_that_are_odd_anyway_do_not_count),
		cmocka_unit_test(what_is_odd_anyway_may_come_where_the_flow_was_lost),
		cmocka_unit_test(what_is_odd_anyway_hides_nothing_new),
		cmocka_unit_test(sources_are_apart),
		cmocka_unit_test(a_patch_may_hold_from_some_time_on),
		cmocka_unit_test(and_until_some_time),
		cmocka_unit_test(mixed_evidence_makes_no_time),
		cmocka_unit_test(without_time_a_patch_holds_always),
		cmocka_unit_test(places_that_others_explain_say_nothing),
		cmocka_unit_test(a_log_that_is_cut_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
