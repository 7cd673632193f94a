#include "correlate/tsc_run.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "decode/pt/pt_offsets.h"

/* Observations by hand: what lies on a line and what does not, to the tick. */

enum { TOLERANCE = 160, SECOND = 2000000000 };

static const uint64_t start = 5000000000, offset = 0x12345678;

/* Both TSCs `after` ticks of the host, with the guest's off the line of slope 1 by `stray`. */
static struct tsc_pair pair_at(uint64_t after, int64_t stray)
{
	return (struct tsc_pair){ .host = start + after,
				  .guest = (start + after + offset + (uint64_t)stray) &
					   PT_TSC_MASK };
}

static struct tsc_run begin_at(uint64_t after, int64_t stray)
{
	struct tsc_pair pair = pair_at(after, stray);

	return tsc_run_begin(&pair, TSC_GOOD, 0);
}

static bool add(struct tsc_run *run, uint64_t after, int64_t stray)
{
	struct tsc_pair pair = pair_at(after, stray);

	return tsc_run_add(run, &pair, TSC_GOOD, TOLERANCE);
}

/* The stray of a guest whose TSC runs at 1 + `slope` times the host's. */
static int64_t at_slope(uint64_t after, double slope)
{
	return (int64_t)((double)after * slope);
}

static bool tilt(struct tsc_run *run, double second_slope, double third_slope)
{
	struct tsc_run second = begin_at(SECOND, at_slope(SECOND, second_slope));
	struct tsc_pair third = pair_at(2l * SECOND, at_slope(2l * SECOND, third_slope));

	return tsc_run_tilt(run, &second, &third, TOLERANCE);
}

static struct tsc_run tilted_run(double slope)
{
	struct tsc_run run = begin_at(0, 0);

	assert_true(tilt(&run, slope, slope));
	return run;
}

static void assert_slope(const struct tsc_run *run, double slope)
{
	assert_true(run->slope_low <= slope && slope <= run->slope_high);
	assert_true(run->slope_high - run->slope_low < 1e-6);
}

static void assert_same(const struct tsc_run *a, const struct tsc_run *b)
{
	assert_int_equal(a->first.host, b->first.host);
	assert_int_equal(a->last.host, b->last.host);
	assert_int_equal(a->from, b->from);
	assert_int_equal(a->low, b->low);
	assert_int_equal(a->high, b->high);
	assert_true(a->sum == b->sum);
	assert_true(a->slope_low == b->slope_low && a->slope_high == b->slope_high);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->quality, b->quality);
}

static void two_ticks_of_the_crystal_are_tolerated(void **state)
{
	assert_int_equal(tsc_tolerance(&(struct pt_config){ .ctc_n = 167, .ctc_d = 2 }), 167);
}

static void a_fast_or_unknown_crystal_leaves_some_tolerance(void **state)
{
	const int64_t least = tsc_tolerance(&(struct pt_config){ 0 });

	assert_int_equal(least, 64);
	assert_int_equal(tsc_tolerance(&(struct pt_config){ .ctc_n = 2, .ctc_d = 1 }), least);
}

static void observations_stray_by_the_tolerance_in_all(void **state)
{
	struct tsc_run run = begin_at(0, 0), before;

	assert_true(add(&run, 10, -100));
	assert_true(add(&run, 20, TOLERANCE - 100));
	before = run;
	assert_false(add(&run, 30, TOLERANCE - 99));
	assert_false(add(&run, 30, -101));
	assert_same(&run, &before);
	assert_int_equal(run.count, 3);
}

static void the_guests_tsc_may_wrap(void **state)
{
	const struct tsc_pair first = { .host = start, .guest = PT_TSC_MASK - 5 };
	const struct tsc_pair second = { .host = start + 10, .guest = 4 };
	struct tsc_run run = tsc_run_begin(&first, TSC_GOOD, 0);

	assert_true(tsc_run_add(&run, &second, TSC_GOOD, 0));
	assert_int_equal(tsc_run_offset(&run), (PT_TSC_MASK - 5 - start) & PT_TSC_MASK);
}

static void half_the_range_of_a_tsc_is_no_agreement(void **state)
{
	struct tsc_run run = begin_at(0, 0);

	assert_false(add(&run, 10, INT64_MIN >> 8));
	assert_false(add(&run, 10, INT64_MAX >> 8));
}

static void the_last_is_the_latest_and_the_quality_the_best(void **state)
{
	struct tsc_run run = begin_at(100, 0);
	struct tsc_pair confirmed = pair_at(50, 0), doubtful = pair_at(200, 0);

	assert_true(tsc_run_add(&run, &confirmed, TSC_CONFIRMED, TOLERANCE));
	assert_int_equal(run.last.host, start + 100);
	assert_true(tsc_run_add(&run, &doubtful, TSC_DOUBTFUL, TOLERANCE));
	assert_int_equal(run.last.host, start + 200);
	assert_int_equal(run.first.host, start + 100);
	assert_int_equal(run.quality, TSC_CONFIRMED);
}

/* The offset of a run whose second and third observations stray so far. */
static int64_t mean_of(int64_t second, int64_t third)
{
	struct tsc_run run = begin_at(0, 0);

	assert_true(add(&run, 10, second));
	assert_true(add(&run, 20, third));
	return tsc_difference(tsc_run_offset(&run), offset);
}

static void the_offset_is_the_mean(void **state)
{
	assert_int_equal(mean_of(30, 60), 30);
	assert_int_equal(mean_of(-30, -60), -30);
	assert_int_equal(mean_of(0, 1), 0);
	assert_int_equal(mean_of(1, 1), 1);
	assert_int_equal(mean_of(0, -1), 0);
	assert_int_equal(mean_of(-1, -1), -1);
	assert_int_equal(mean_of(-2, -2), -1);
	assert_int_equal(mean_of(-3, -3), -2);
}

static void half_a_tick_is_rounded_up(void **state)
{
	struct tsc_run up = begin_at(0, 0), down = begin_at(0, 0);

	assert_true(add(&up, 10, 1) && add(&down, 10, -1));
	assert_int_equal(tsc_run_offset(&up), offset + 1);
	assert_int_equal(tsc_run_offset(&down), offset);
	down = begin_at(0, 0);
	assert_true(add(&down, 10, -3));
	assert_int_equal(tsc_run_offset(&down), offset - 1);
}

static void a_scaled_guest_lies_on_a_steeper_or_flatter_line(void **state)
{
	static const double slopes[] = { 2.5e-4, -2.5e-4, 0.5, -0.5, 60, -62.0 / 64 };

	for (size_t i = 0; i < sizeof(slopes) / sizeof(*slopes); i++) {
		struct tsc_run run = tilted_run(slopes[i]);

		assert_false(tsc_run_is_constant(&run));
		assert_slope(&run, slopes[i]);
		assert_int_equal(run.count, 3);
		assert_int_equal(run.last.host, start + 2l * SECOND);
	}
}

static void a_slope_that_kvm_does_not_make_is_none(void **state)
{
	static const double slopes[] = { 0, 5e-5, -5e-5, 70, -0.999 };

	for (size_t i = 0; i < sizeof(slopes) / sizeof(*slopes); i++) {
		struct tsc_run run = begin_at(0, 0), before = run;

		assert_false(tilt(&run, slopes[i], slopes[i]));
		assert_same(&run, &before);
	}
}

static void three_that_are_not_on_a_line_make_none(void **state)
{
	struct tsc_run run = begin_at(0, 0), before = run;

	assert_false(tilt(&run, 0.5, 0.4));
	assert_false(tilt(&run, 0.5, -0.5));
	assert_false(
		tilt(&run, 0.5, 0.5 + 2e-7)); /* 400 ticks off at the second, 800 at the third */
	assert_same(&run, &before);
	assert_true(tilt(&run, 0.5, 0.5 + 5e-8));
}

static void a_scaled_run_takes_what_is_on_its_line(void **state)
{
	struct tsc_run run = tilted_run(0.5), before = run;
	const uint64_t between = SECOND + 7, after = 5l * SECOND;

	assert_false(add(&run, between, at_slope(between, 0.5) + 3 * TOLERANCE));
	assert_false(add(&run, after, at_slope(after, 0.5001)));
	assert_false(add(&run, after, 0));
	assert_same(&run, &before);
	assert_true(add(&run, between, at_slope(between, 0.5) - TOLERANCE / 2));
	assert_true(add(&run, after, at_slope(after, 0.5)));
	assert_slope(&run, 0.5);
	assert_int_equal(run.count, 5);
}

static void close_to_the_first_any_slope_is_a_point(void **state)
{
	struct tsc_run run = tilted_run(0.5), before = run;

	assert_false(add(&run, TOLERANCE, TOLERANCE + 1));
	assert_false(add(&run, TOLERANCE, -TOLERANCE - 1));
	assert_same(&run, &before);
	assert_true(add(&run, TOLERANCE, TOLERANCE));
	assert_true(add(&run, (uint64_t)-TOLERANCE, -TOLERANCE));
	assert_true(run.slope_low == before.slope_low && run.slope_high == before.slope_high);
}

static void the_earlier_side_of_a_line_narrows_it_as_well(void **state)
{
	struct tsc_run run = tilted_run(0.5);
	const uint64_t earlier = (uint64_t)-SECOND;
	struct tsc_pair off = pair_at(earlier, -SECOND / 4), on = pair_at(earlier, -SECOND / 2);

	assert_false(tsc_run_add(&run, &off, TSC_GOOD, TOLERANCE));
	assert_true(tsc_run_add(&run, &on, TSC_GOOD, TOLERANCE));
	assert_slope(&run, 0.5);
}

static void joined_runs_count_together(void **state)
{
	struct tsc_run one = begin_at(0, 0), other = begin_at(1000, 20);

	assert_true(add(&one, 10, 40));
	assert_true(add(&other, 1010, 30) && add(&other, 1020, 60));
	assert_true(tsc_run_join(&one, &other, TOLERANCE));
	assert_int_equal(one.count, 5);
	assert_int_equal(one.last.host, start + 1020);
	assert_int_equal(tsc_difference(tsc_run_offset(&one), offset), (40 + 20 + 30 + 60) / 5);
	assert_int_equal(one.low, 0);
	assert_int_equal(one.high, 60);
}

static void a_joined_run_strays_as_far_as_both(void **state)
{
	struct tsc_run one = begin_at(0, 0), other = begin_at(1000, 0);

	assert_true(add(&other, 1010, 70) && add(&other, 1020, -50) && add(&other, 1030, 0));
	assert_true(tsc_run_join(&one, &other, TOLERANCE));
	assert_int_equal(one.low, -50);
	assert_int_equal(one.high, 70);
}

static void runs_of_other_offsets_are_not_joined(void **state)
{
	struct tsc_run one = begin_at(0, 0), other = begin_at(1000, TOLERANCE + 1), before = one;

	assert_false(tsc_run_join(&one, &other, TOLERANCE));
	assert_same(&one, &before);
	other = begin_at(1000, 0);
	assert_true(add(&other, 1010, TOLERANCE) && add(&one, 10, -1));
	before = one;
	assert_false(tsc_run_join(&one, &other, TOLERANCE));
	assert_same(&one, &before);
}

static void nor_are_runs_that_stray_too_far_together(void **state)
{
	struct tsc_run one = begin_at(0, 0), other = begin_at(1000, 0), before;

	assert_true(add(&one, 10, 100));
	assert_true(add(&other, 1010, 99 - TOLERANCE) && add(&other, 1020, 0));
	before = one;
	assert_false(tsc_run_join(&one, &other, TOLERANCE));
	assert_same(&one, &before);
}

static void a_confirmed_part_confirms_the_whole(void **state)
{
	struct tsc_run one = begin_at(0, 0), other = begin_at(1000, 0);

	other.quality = TSC_CONFIRMED;
	assert_true(tsc_run_join(&one, &other, TOLERANCE));
	assert_int_equal(one.quality, TSC_CONFIRMED);
	other.quality = TSC_DOUBTFUL;
	assert_true(tsc_run_join(&one, &other, TOLERANCE));
	assert_int_equal(one.quality, TSC_CONFIRMED);
}

static void a_point_on_a_scaled_line_is_joined_either_way(void **state)
{
	const uint64_t after = 3l * SECOND;
	struct tsc_run line = tilted_run(0.5), point = begin_at(after, at_slope(after, 0.5));
	struct tsc_run first = line, off = begin_at(after, 0);

	assert_true(add(&point, after + 10, at_slope(after, 0.5)));
	assert_true(tsc_run_join(&first, &point, TOLERANCE));
	assert_slope(&first, 0.5);
	assert_int_equal(first.count, 5);
	assert_true(tsc_run_join(&point, &line, TOLERANCE));
	assert_slope(&point, 0.5);
	assert_int_equal(point.count, 5);
	assert_int_equal(point.from, start);
	assert_false(tsc_run_join(&line, &off, TOLERANCE));
	assert_false(tsc_run_join(&off, &line, TOLERANCE));
	assert_true(tsc_run_is_constant(&off));
}

static void a_run_begins_with_its_earliest_whichever_was_the_line(void **state)
{
	struct tsc_run run = begin_at((uint64_t)-SECOND, -SECOND / 2), line = tilted_run(0.5);

	assert_true(tsc_run_join(&run, &line, TOLERANCE));
	assert_int_equal(run.from, start - SECOND);
	assert_int_equal(run.first.host, start);
	run = begin_at((uint64_t)-SECOND, -SECOND / 2);
	assert_true(tsc_run_join(&line, &run, TOLERANCE));
	assert_int_equal(line.from, start - SECOND);
}

/* Of many observations the first ones look constant: they drift as far as is tolerated. One that
 * does not drift has changed since. */
static void what_drifts_is_the_beginning_of_a_line(void **state)
{
	const uint64_t step = SECOND / 100000;
	const int64_t drifts[] = { TOLERANCE / 3, 0 };

	for (unsigned i = 0; i < 2; i++) {
		struct tsc_run run = begin_at(0, 0), before;
		struct tsc_run second = begin_at(4 * step, TOLERANCE / 3 * 4);
		struct tsc_pair third = pair_at(5 * step, TOLERANCE / 3 * 5);

		assert_true(add(&run, step, drifts[i]) && add(&run, 2 * step, 2 * drifts[i]));
		before = run;
		assert_int_equal(tsc_run_tilt(&run, &second, &third, TOLERANCE), !i);
		if (i)
			assert_same(&run, &before);
		else
			assert_int_equal(run.count, 5);
	}
}

/* Observations close together look constant, though they stray as far as is tolerated. */
static void a_short_part_of_a_scaled_line_is_joined_either_way(void **state)
{
	const int64_t off = TOLERANCE / 4;
	struct tsc_run line = tilted_run(0.5), first = line;
	struct tsc_run part = begin_at((uint64_t)-SECOND, -SECOND / 2 + off);

	for (int64_t after = TOLERANCE; after <= 2l * TOLERANCE; after += TOLERANCE / 2)
		assert_true(add(&part, (uint64_t)(after - SECOND), (after - SECOND) / 2 + off));
	assert_true(tsc_run_is_constant(&part) && part.high == TOLERANCE);
	assert_true(tsc_run_join(&first, &part, TOLERANCE));
	assert_int_equal(first.count, line.count + part.count);
	assert_true(tsc_run_join(&part, &line, TOLERANCE));
	assert_slope(&part, 0.5);
}

/* The outermost of what looks constant may be neither its first nor its last. */
static void all_of_a_point_must_be_on_a_scaled_line(void **state)
{
	const uint64_t after = SECOND;
	const int64_t at = at_slope(after, 0.5);
	struct tsc_run line = tilted_run(0.5), before = line, point = begin_at(after, at + 100);

	assert_true(add(&point, after + 10, at + 100 + TOLERANCE) &&
		    add(&point, after + 20, at + 100));
	assert_false(tsc_run_join(&line, &point, TOLERANCE));
	assert_same(&line, &before);
	assert_false(tsc_run_join(&point, &line, TOLERANCE));
}

/* Two lines that cross where one is short are two all the same. */
static void lines_of_different_slopes_are_not_joined(void **state)
{
	struct tsc_run one = tilted_run(0.5), other = one, before = one;

	other.first = other.last = pair_at(SECOND, at_slope(SECOND, 0.5));
	other.slope_low = 0.6;
	other.slope_high = 0.7;
	assert_false(tsc_run_join(&one, &other, TOLERANCE));
	assert_same(&one, &before);
}

static void scaled_runs_of_one_line_are_joined(void **state)
{
	const uint64_t after = 7l * SECOND;
	struct tsc_run one = tilted_run(0.5), same = one, other = tilted_run(0.25);

	same.first = pair_at(after, at_slope(after, 0.5));
	same.last = pair_at(after + SECOND, at_slope(after + SECOND, 0.5));
	assert_true(tsc_run_join(&one, &same, TOLERANCE));
	assert_int_equal(one.count, 6);
	assert_int_equal(one.last.host, start + after + SECOND);
	assert_false(tsc_run_join(&one, &other, TOLERANCE));
	assert_int_equal(one.count, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ticks_of_the_crystal_are_tolerated),
		cmocka_unit_test(a_fast_or_unknown_crystal_leaves_some_tolerance),
		cmocka_unit_test(observations_stray_by_the_tolerance_in_all),
		cmocka_unit_test(the_guests_tsc_may_wrap),
		cmocka_unit_test(half_the_range_of_a_tsc_is_no_agreement),
		cmocka_unit_test(the_last_is_the_latest_and_the_quality_the_best),
		cmocka_unit_test(the_offset_is_the_mean),
		cmocka_unit_test(half_a_tick_is_rounded_up),
		cmocka_unit_test(a_scaled_guest_lies_on_a_steeper_or_flatter_line),
		cmocka_unit_test(a_slope_that_kvm_does_not_make_is_none),
		cmocka_unit_test(three_that_are_not_on_a_line_make_none),
		cmocka_unit_test(a_scaled_run_takes_what_is_on_its_line),
		cmocka_unit_test(close_to_the_first_any_slope_is_a_point),
		cmocka_unit_test(the_earlier_side_of_a_line_narrows_it_as_well),
		cmocka_unit_test(joined_runs_count_together),
		cmocka_unit_test(a_joined_run_strays_as_far_as_both),
		cmocka_unit_test(runs_of_other_offsets_are_not_joined),
		cmocka_unit_test(nor_are_runs_that_stray_too_far_together),
		cmocka_unit_test(a_confirmed_part_confirms_the_whole),
		cmocka_unit_test(a_point_on_a_scaled_line_is_joined_either_way),
		cmocka_unit_test(what_drifts_is_the_beginning_of_a_line),
		cmocka_unit_test(a_short_part_of_a_scaled_line_is_joined_either_way),
		cmocka_unit_test(a_run_begins_with_its_earliest_whichever_was_the_line),
		cmocka_unit_test(all_of_a_point_must_be_on_a_scaled_line),
		cmocka_unit_test(lines_of_different_slopes_are_not_joined),
		cmocka_unit_test(scaled_runs_of_one_line_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
