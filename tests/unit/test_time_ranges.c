#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/pt/time_ranges.h"

/* A recording of 1000 ns, so that a per cent is 10 ns. */
enum { FIRST = 5000, LAST = 6000 };

static const uint64_t second = 1000000000;

static struct time_ranges parse(const char *text)
{
	struct time_ranges ranges;
	struct ptvm_error error = { 0 };

	if (time_ranges_parse(text, FIRST, LAST, &ranges, &error))
		fail_msg("%s: %s", text, error.message);
	return ranges;
}

static void refuse(const char *text)
{
	struct time_ranges ranges = { .count = 77 };
	struct ptvm_error error = { 0 };

	if (time_ranges_parse(text, FIRST, LAST, &ranges, &error) != -PTVM_BAD_USAGE)
		fail_msg("%s was accepted", text);
	assert_int_equal(ranges.count, 77);
	assert_non_null(strstr(error.message, text));
}

static void assert_range(const char *text, uint64_t from, uint64_t to)
{
	struct time_ranges ranges = parse(text);

	assert_int_equal(ranges.count, 1);
	assert_int_equal(ranges.items[0].from, from);
	assert_int_equal(ranges.items[0].to, to);
}

static void times_are_seconds_and_a_fraction(void **state)
{
	assert_range("1,2", second, 2 * second);
	assert_range("26.863305883,26.9", 26863305883, 26900000000);
	assert_range(".5,1.", second / 2, second);
	assert_range("1.000000001,1.000000001", second + 1, second + 1);
	assert_range(" 5, 10", 5 * second, 10 * second);
}

static void either_end_may_be_missing(void **state)
{
	assert_range("3,", 3 * second, UINT64_MAX);
	assert_range(",3", 0, 3 * second);
	assert_range(",", 0, UINT64_MAX);
	assert_range("3,0", 3 * second, UINT64_MAX);
}

static void blanks_separate_times(void **state)
{
	struct time_ranges ranges = parse(",2  3,4\t5,");

	assert_int_equal(ranges.count, 3);
	assert_int_equal(ranges.items[0].from, 0);
	assert_int_equal(ranges.items[0].to, 2 * second);
	assert_int_equal(ranges.items[1].from, 3 * second);
	assert_int_equal(ranges.items[1].to, 4 * second);
	assert_int_equal(ranges.items[2].from, 5 * second);
	assert_int_equal(ranges.items[2].to, UINT64_MAX);
}

static void times_rise_and_do_not_overlap(void **state)
{
	refuse("2,1");
	refuse("1,2 2,3");
	refuse("3,4 1,2");
	refuse("1,2 ,3");
	refuse("1,0 3,4");
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"5",
		"x,y",
		"1,y",
		"1,2,3,4",
		"5, 10,20",
		"5 ,10",
		"5,10 ",
		"-5,10",
		"+5,10",
		"5.1234567890,6",
		"1.+2,3",
		"0x1,2",
		"1..2,3",
		"1e3,",
		"99999999999999999999,",
		"18446744074,",
		"18446744073.9,",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refuse(texts[i]);
}

static void slices_are_counted_from_one(void **state)
{
	assert_range("10%/1", 5000, 5099);
	assert_range("10%/2", 5100, 5199);
	assert_range("10%/10", 5900, 6000);
	assert_range("0.1%/2", 5001, 5001);
	assert_range("10%", 5000, 5099);
	assert_range("100%", 5000, 6000);
}

static void a_dash_is_from_one_per_cent_to_another(void **state)
{
	assert_range("0%-15%", 5000, 5149);
	assert_range("90%-100%", 5900, 6000);
	assert_range("0%-0%", 5000, 5000);
}

static void parts_are_listed_with_commas(void **state)
{
	struct time_ranges ranges = parse("50%/2, 10%/1,0%-20%,");

	assert_int_equal(ranges.count, 3);
	assert_int_equal(ranges.items[0].from, 5500);
	assert_int_equal(ranges.items[0].to, 6000);
	assert_int_equal(ranges.items[1].to, 5099);
	assert_int_equal(ranges.items[2].to, 5199);
}

static void what_is_no_part_is_refused(void **state)
{
	static const char *const texts[] = {
		"%",         "10%/0",       "10%/11",
		"0%",        "110%",        "10%-5%",
		"10%,20%",   "10%x",        "%-10%",
		"10%-",      "10%-20",      "0x10%/1",
		"1e1%",      "-10%",        "10%/-1",
		"10%/1a",    "nan%",        ".%",
		"1.2.3%",    "10%/",        "10%/1,,10%/2",
		"1,2 10%",   "10%/1 10%/2", "10%/99999999999999999999",
		"0%-100.1%",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refuse(texts[i]);
}

static void parts_of_any_recording_lie_within_it(void **state)
{
	static const uint64_t lasts[] = { 0, 1, 1ULL << 53, UINT64_MAX - 1, UINT64_MAX };
	struct time_ranges ranges;
	struct ptvm_error error = { 0 };

	for (size_t i = 0; i < sizeof(lasts) / sizeof(*lasts); i++) {
		assert_int_equal(time_ranges_parse("33%/3,0%-100%", 0, lasts[i], &ranges, &error),
				 0);
		assert_true(ranges.items[0].from <= ranges.items[0].to);
		assert_true(ranges.items[0].to <= lasts[i]);
		assert_int_equal(ranges.items[1].to, lasts[i]);
	}
}

static void a_recording_that_ends_before_it_begins_has_no_parts(void **state)
{
	struct time_ranges ranges;
	struct ptvm_error error = { 0 };

	assert_int_equal(time_ranges_parse("10%", 2, 1, &ranges, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, "--time=10%: the recording ends before it begins");
	assert_int_equal(time_ranges_parse("1,2", 2, 1, &ranges, &error), 0);
}

static void only_parts_need_the_ends_of_the_recording(void **state)
{
	assert_true(time_ranges_have_percent("10%/2"));
	assert_false(time_ranges_have_percent("1,2 3,4"));
}

static void there_are_not_too_many_ranges(void **state)
{
	char times[16 * (TIME_RANGES_MAX + 1)], *p = times;
	struct time_ranges ranges;
	struct ptvm_error error = { 0 };

	for (int i = 0; i < TIME_RANGES_MAX; i++)
		p += sprintf(p, " %d,%d", 2 * i, 2 * i + 1);
	assert_int_equal(parse(times).count, TIME_RANGES_MAX);
	(void)sprintf(p, " 99,");
	refuse(times);
	p = times;
	for (int i = 0; i < TIME_RANGES_MAX; i++)
		p += sprintf(p, "1%%/%d,", i + 1);
	assert_int_equal(parse(times).count, TIME_RANGES_MAX);
	(void)sprintf(p, "1%%");
	assert_int_equal(time_ranges_parse(times, FIRST, LAST, &ranges, &error), -PTVM_BAD_USAGE);
	assert_memory_equal(error.message, "more than 16 ranges in --time", 29);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_seconds_and_a_fraction),
		cmocka_unit_test(either_end_may_be_missing),
		cmocka_unit_test(blanks_separate_times),
		cmocka_unit_test(times_rise_and_do_not_overlap),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(slices_are_counted_from_one),
		cmocka_unit_test(a_dash_is_from_one_per_cent_to_another),
		cmocka_unit_test(parts_are_listed_with_commas),
		cmocka_unit_test(what_is_no_part_is_refused),
		cmocka_unit_test(parts_of_any_recording_lie_within_it),
		cmocka_unit_test(a_recording_that_ends_before_it_begins_has_no_parts),
		cmocka_unit_test(only_parts_need_the_ends_of_the_recording),
		cmocka_unit_test(there_are_not_too_many_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
