#include "correlate/tsc_offsets.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/pt/pt_offsets.h"

/* Segments by hand, and the host's time that follows of a guest's. */

static const uint64_t noon = 1000000000000, hour = 7200000000000;

static struct tsc_segment segment_of(uint64_t from, uint64_t to, int64_t offset)
{
	return (struct tsc_segment){ .from = from,
				     .to = to,
				     .offset = (uint64_t)offset & PT_TSC_MASK,
				     .ratio = TSC_RATIO_ONE,
				     .host = from };
}

static uint64_t host_of(struct tsc_segment *segments, size_t count, uint64_t tsc, uint64_t about,
			bool expected)
{
	const struct vmcs_offsets guest = { .segments = { segments, count, count } };

	return tsc_offsets_host(&guest, tsc & PT_TSC_MASK, about, expected);
}

static void a_guest_is_found_by_its_vmcs(void **state)
{
	struct vmcs_offsets guests[] = { { .vmcs = 7 }, { .vmcs = 0 }, { .vmcs = 9 } };
	const struct tsc_offsets offsets = { .guests = { guests, 3, 3 } }, none = { 0 };

	assert_ptr_equal(tsc_offsets_find(&offsets, 7), &guests[0]);
	assert_ptr_equal(tsc_offsets_find(&offsets, 9), &guests[2]);
	assert_ptr_equal(tsc_offsets_find(&offsets, 0), &guests[1]);
	assert_null(tsc_offsets_find(&offsets, 8));
	assert_null(tsc_offsets_find(&none, 7));
}

static void scaling_does_not_overflow(void **state)
{
	assert_int_equal(tsc_scale(UINT64_MAX, TSC_RATIO_ONE), UINT64_MAX);
	assert_int_equal(tsc_scale(UINT64_MAX, TSC_RATIO_ONE / 2), UINT64_MAX / 2);
	assert_int_equal(tsc_scale(noon + 1, TSC_RATIO_ONE * 3 / 2), noon / 2 * 3 + 1);
	assert_int_equal(tsc_scale(noon, 0), 0);
}

static void the_host_is_the_guest_without_its_offset(void **state)
{
	struct tsc_segment behind = segment_of(0, UINT64_MAX, -5), ahead = behind;

	ahead.offset = 5;
	assert_int_equal(host_of(&behind, 1, noon - 5, noon + hour, false), noon);
	assert_int_equal(host_of(&ahead, 1, noon + 5, noon - hour, false), noon);
}

static void the_upper_bits_are_those_of_the_time_about(void **state)
{
	const uint64_t turn = PT_TSC_MASK + 1, late = 200 * turn + noon;
	struct tsc_segment segment = segment_of(0, UINT64_MAX, -5);

	assert_int_equal(host_of(&segment, 1, late - 5, late + hour, false), late);
	assert_int_equal(host_of(&segment, 1, 200 * turn - 9, late, false), 200 * turn - 4);
	segment.host = late;
	assert_int_equal(host_of(&segment, 1, late + 10, 0, false), late + 15);
}

static void a_scaled_tsc_is_scaled_back(void **state)
{
	static const uint64_t ratios[] = { TSC_RATIO_ONE * 3 / 2, TSC_RATIO_ONE / 3,
					   TSC_RATIO_ONE * 64 };

	for (size_t i = 0; i < sizeof(ratios) / sizeof(*ratios); i++) {
		struct tsc_segment segment = segment_of(0, UINT64_MAX, -12345);
		uint64_t host;

		segment.ratio = ratios[i];
		host = host_of(&segment, 1, tsc_scale(noon, ratios[i]) - 12345, noon + hour, false);
		assert_true(host + 3 >= noon && host <= noon + 3);
	}
}

static void a_ratio_of_nothing_is_survived(void **state)
{
	struct tsc_segment segment = segment_of(0, UINT64_MAX, 0);

	segment.ratio = 0;
	assert_int_equal(host_of(&segment, 1, 10, noon, false), noon + 10);
}

static void what_is_expected_tells_the_segment(void **state)
{
	struct tsc_segment segments[] = { segment_of(0, noon, 100),
					  segment_of(noon, UINT64_MAX, 5000) };

	assert_int_equal(host_of(segments, 2, noon + 100, noon + 3, true), noon);
	assert_int_equal(host_of(segments, 2, noon + 5000, noon + 3, true), noon);
	assert_int_equal(host_of(segments, 2, noon + 100, noon - 3, true), noon);
	assert_int_equal(host_of(segments, 2, noon + 5000, noon - 3, true), noon);
}

static void of_segments_the_one_of_that_time_is_taken(void **state)
{
	struct tsc_segment segments[] = { segment_of(0, noon, (int64_t)hour),
					  segment_of(noon, noon + 9 * hour, (int64_t)(3 * hour)),
					  segment_of(noon + 9 * hour, UINT64_MAX, 0) };

	assert_int_equal(host_of(segments, 3, noon - 1 + hour, noon, false), noon - 1);
	assert_int_equal(host_of(segments, 3, noon + 4 * hour, noon, false), noon + hour);
	assert_int_equal(host_of(segments, 3, noon + 20 * hour, noon, false), noon + 20 * hour);
}

/* As that of a guest that boots again: by the offset before, its time stamps are of long ago, when
 * the trace had not begun. */
static void of_segments_that_fit_the_one_about_that_time_is_taken(void **state)
{
	const uint64_t day = 100 * hour;
	struct tsc_segment segments[] = { segment_of(0, day, 0),
					  segment_of(day, UINT64_MAX, -(int64_t)(9 * hour)) };

	assert_int_equal(host_of(segments, 2, day + hour - 9 * hour, day + 2 * hour, false),
			 day + hour);
	assert_int_equal(host_of(segments, 2, day - hour, day, false), day - hour);
}

static void between_segments_the_nearest_is_taken(void **state)
{
	struct tsc_segment segments[] = { segment_of(noon, noon + 10, 0),
					  segment_of(noon + 100, noon + 110, 1) };

	assert_int_equal(host_of(segments, 2, noon + 20, noon, false), noon + 20);
	assert_int_equal(host_of(segments, 2, noon + 91, noon, false), noon + 90);
	assert_int_equal(host_of(segments, 2, noon + 121, noon, false), noon + 120);
	assert_int_equal(host_of(segments, 2, noon - 50, noon, false), noon - 50);
}

static void in_a_segment_is_better_than_just_outside_of_one(void **state)
{
	struct tsc_segment segments[] = { segment_of(noon, noon + 10, 0),
					  segment_of(noon + 100, noon + 110, -94) };

	assert_int_equal(host_of(segments, 2, noon + 10, noon, false), noon + 10);
	assert_int_equal(host_of(segments, 2, noon + 11, noon, false), noon + 105);
}

static void no_difference_but_rounding_is_none(void **state)
{
	struct tsc_segment segment = segment_of(0, UINT64_MAX, 8);

	assert_true(tsc_segment_is_none(&segment));
	segment.offset = (uint64_t)-8 & PT_TSC_MASK;
	assert_true(tsc_segment_is_none(&segment));
	segment.offset = 9;
	assert_false(tsc_segment_is_none(&segment));
	segment.offset = (uint64_t)-9 & PT_TSC_MASK;
	assert_false(tsc_segment_is_none(&segment));
	segment.offset = 0;
	segment.ratio++;
	assert_false(tsc_segment_is_none(&segment));
}

static void one_offset_is_something_to_correct(void **state)
{
	struct tsc_segment first[] = { segment_of(0, noon, 0), segment_of(noon, UINT64_MAX, 3) };
	struct tsc_segment second = segment_of(0, UINT64_MAX, 0);
	struct vmcs_offsets guests[] = { { .segments = { first, 2, 2 } },
					 { .vmcs = 1 },
					 { .vmcs = 2, .segments = { &second, 1, 1 } } };
	const struct tsc_offsets offsets = { .guests = { guests, 3, 3 } }, none = { 0 };
	struct tsc_segment *const each[] = { &first[0], &first[1], &second };

	assert_true(tsc_offsets_are_none(&none));
	assert_true(tsc_offsets_are_none(&offsets));
	for (size_t i = 0; i < 3; i++) {
		each[i]->offset = 1000;
		assert_false(tsc_offsets_are_none(&offsets));
		each[i]->offset = 0;
	}
}

static void each_guest_seen_must_have_an_offset(void **state)
{
	struct tsc_segment segment = segment_of(0, UINT64_MAX, 1000);
	struct vmcs_offsets guests[] = { { .segments = { &segment, 1, 1 } },
					 { .segments = { &segment, 1, 1 } } };
	struct tsc_offsets offsets = { .guests = { guests, 2, 2 } };

	assert_true(tsc_offsets_are_complete(&offsets));
	offsets.no_vmcs = 1;
	assert_false(tsc_offsets_are_complete(&offsets));
	offsets.no_vmcs = 0;
	offsets.dropped = 1;
	assert_false(tsc_offsets_are_complete(&offsets));
	offsets.dropped = 0;
	for (size_t i = 0; i < 2; i++) {
		guests[i].segments.count = 0;
		assert_false(tsc_offsets_are_complete(&offsets));
		guests[i].segments.count = 1;
	}
}

static void nothing_is_left_when_released(void **state)
{
	struct vmcs_offsets guest = { .vmcs = 1 };
	struct tsc_offsets offsets = { 0 };

	assert_true(vec_push(&guest.segments, segment_of(0, UINT64_MAX, 1)));
	assert_true(vec_push(&offsets.guests, guest));
	tsc_offsets_free(&offsets);
	assert_int_equal(offsets.guests.count, 0);
	assert_null(offsets.guests.items);
	tsc_offsets_free(&offsets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guest_is_found_by_its_vmcs),
		cmocka_unit_test(scaling_does_not_overflow),
		cmocka_unit_test(the_host_is_the_guest_without_its_offset),
		cmocka_unit_test(the_upper_bits_are_those_of_the_time_about),
		cmocka_unit_test(a_scaled_tsc_is_scaled_back),
		cmocka_unit_test(a_ratio_of_nothing_is_survived),
		cmocka_unit_test(what_is_expected_tells_the_segment),
		cmocka_unit_test(of_segments_the_one_of_that_time_is_taken),
		cmocka_unit_test(of_segments_that_fit_the_one_about_that_time_is_taken),
		cmocka_unit_test(between_segments_the_nearest_is_taken),
		cmocka_unit_test(in_a_segment_is_better_than_just_outside_of_one),
		cmocka_unit_test(no_difference_but_rounding_is_none),
		cmocka_unit_test(one_offset_is_something_to_correct),
		cmocka_unit_test(each_guest_seen_must_have_an_offset),
		cmocka_unit_test(nothing_is_left_when_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
