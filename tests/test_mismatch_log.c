#include "decode/mismatch_log.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Trails written by hand: places are 1000 bytes and 1000 ticks apart. */

struct trails {
	struct patch_trail without, with, unclear;
};

static struct trail_event event_at(enum trail_kind kind, uint64_t place)
{
	return (struct trail_event){ .kind = kind, .position = place * 1000, .time = place * 1000 };
}

/* Lost at a place, and found again 100 bytes later. */
static void lose(struct patch_trail *trail, uint64_t place)
{
	struct trail_event event = event_at(TRAIL_GAP, place);

	patch_trail_note(trail, event);
	event.kind = TRAIL_BEGIN;
	event.position += 100;
	patch_trail_note(trail, event);
}

static void lose_all(struct patch_trail *trail, uint64_t from, uint64_t to)
{
	for (uint64_t place = from; place < to; place++)
		lose(trail, place);
}

static void be_odd(struct patch_trail *trail, uint64_t place, uint64_t to)
{
	struct trail_event event = event_at(TRAIL_ODD, place);

	event.from = 1;
	event.to = to;
	patch_trail_note(trail, event);
}

static struct trail_verdict verdict_of(struct trails *trails)
{
	struct trail_verdict verdict;

	assert_int_equal(
		patch_trail_compare(&trails->without, &trails->with, &trails->unclear, &verdict),
		0);
	patch_trail_free(&trails->without);
	patch_trail_free(&trails->with);
	patch_trail_free(&trails->unclear);
	return verdict;
}

static void assert_always(const struct trail_verdict *verdict, uint32_t gone, uint32_t against)
{
	assert_int_equal(verdict->since, 0);
	assert_int_equal(verdict->until, UINT64_MAX);
	assert_int_equal(verdict->gone, gone);
	assert_int_equal(verdict->against, against);
}

static void a_right_patch_makes_disagreements_go(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose_all(&trails.without, 1, 11);
	lose(&trails.with, 4);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 9, 0);
	assert_int_equal(verdict.odd, 0);
}

static void what_is_new_speaks_against_it(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose_all(&trails.without, 1, 11);
	lose(&trails.with, 20);
	be_odd(&trails.with, 21, 2);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 10, 1);
	assert_int_equal(verdict.odd, 1);
}

static void one_place_counts_once(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	for (unsigned i = 0; i < 5; i++) {
		patch_trail_note(
			&trails.without,
			(struct trail_event){ .kind = TRAIL_GAP, .position = 5000 + i * 20 });
		patch_trail_note(&trails.with, (struct trail_event){ .kind = TRAIL_ODD,
								     .position = 9000 + i * 20,
								     .to = i });
	}
	trails.without.items[4].kind = TRAIL_BEGIN; /* it is lost only there */
	verdict = verdict_of(&trails);
	assert_always(&verdict, 1, 0);
	assert_int_equal(verdict.odd, 1);
}

/* Where it is not known what would have been there is no contradiction. */
static void where_the_other_was_lost_nothing_is_said(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose(&trails.without, 1);
	patch_trail_note(&trails.without, event_at(TRAIL_GAP, 2));
	patch_trail_note(&trails.without, event_at(TRAIL_BEGIN, 6));
	lose(&trails.with, 4);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 2, 0);
}

static void branches_that_are_odd_anyway_do_not_count(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose(&trails.without, 1);
	be_odd(&trails.without, 3, 7);
	be_odd(&trails.with, 3, 7);
	be_odd(&trails.with, 5, 7);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 1, 0);
	assert_int_equal(verdict.odd, 0);
}

static void sources_are_apart(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose(&trails.without, 1);
	trails.without.source = 1;
	lose(&trails.without, 1);
	trails.with.source = 1;
	lose(&trails.with, 1);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 1, 0);
}

static void a_patch_may_hold_from_some_time_on(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose_all(&trails.with, 1, 31);
	lose_all(&trails.without, 31, 61);
	verdict = verdict_of(&trails);
	assert_int_equal(verdict.since, 30001);
	assert_int_equal(verdict.until, UINT64_MAX);
	assert_int_equal(verdict.gone, 30);
	assert_int_equal(verdict.against, 0);
}

static void and_until_some_time(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose_all(&trails.with, 1, 31);
	lose_all(&trails.without, 31, 61);
	lose_all(&trails.with, 61, 91);
	verdict = verdict_of(&trails);
	assert_int_equal(verdict.since, 30001);
	assert_int_equal(verdict.until, 61000);
	assert_int_equal(verdict.gone, 30);
	assert_int_equal(verdict.against, 0);
}

/* What is contradicted all the time does not hold for a moment in between. */
static void mixed_witnesses_make_no_time(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	for (uint64_t place = 1; place < 61; place += 2) {
		lose(&trails.without, place);
		lose(&trails.with, place + 1);
	}
	verdict = verdict_of(&trails);
	assert_always(&verdict, 30, 30);
}

static void without_time_a_patch_holds_always(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	lose_all(&trails.with, 1, 31);
	lose_all(&trails.without, 31, 61);
	for (size_t i = 0; i < trails.with.count; i++)
		trails.with.items[i].time = trails.without.items[i].time = 0;
	verdict = verdict_of(&trails);
	assert_always(&verdict, 30, 30);
}

static void places_that_others_explain_say_nothing(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;
	struct patch_trail other = { 0 };

	lose_all(&trails.without, 1, 11);
	lose_all(&other, 6, 11);
	patch_trail_note_gone(&trails.without, &other, &trails.unclear);
	patch_trail_free(&other);
	verdict = verdict_of(&trails);
	assert_always(&verdict, 5, 0);
}

static void a_trail_that_is_cut_says_nothing(void **state)
{
	struct trails trails = { 0 };
	struct trail_verdict verdict;

	for (uint64_t place = 1; place <= TRAIL_MAX + 1; place++)
		patch_trail_note(&trails.with, event_at(TRAIL_GAP, place));
	assert_true(trails.with.is_cut);
	assert_true(patch_trail_compare(&trails.without, &trails.with, &trails.unclear, &verdict) <
		    0);
	patch_trail_clear(&trails.with);
	assert_false(trails.with.is_cut);
	(void)verdict_of(&trails);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_patch_makes_disagreements_go),
		cmocka_unit_test(what_is_new_speaks_against_it),
		cmocka_unit_test(one_place_counts_once),
		cmocka_unit_test(where_the_other_was_lost_nothing_is_said),
		cmocka_unit_test(branches_that_are_odd_anyway_do_not_count),
		cmocka_unit_test(sources_are_apart),
		cmocka_unit_test(a_patch_may_hold_from_some_time_on),
		cmocka_unit_test(and_until_some_time),
		cmocka_unit_test(mixed_witnesses_make_no_time),
		cmocka_unit_test(without_time_a_patch_holds_always),
		cmocka_unit_test(places_that_others_explain_say_nothing),
		cmocka_unit_test(a_trail_that_is_cut_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
