#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/number_ranges.h"

static struct number_ranges parse(const char *text)
{
	struct number_ranges ranges;
	struct ptvm_error error = { 0 };

	if (number_ranges_parse("-C", text, &ranges, &error))
		fail_msg("%s: %s", text, error.message);
	return ranges;
}

static void refuse(const char *text)
{
	struct number_ranges ranges = { .count = 77 };
	struct ptvm_error error = { 0 };

	if (number_ranges_parse("-C", text, &ranges, &error) != -PTVM_BAD_USAGE)
		fail_msg("%s was accepted", text);
	assert_int_equal(ranges.count, 77);
	assert_memory_equal(error.message, "-C", 2);
	assert_non_null(strstr(error.message, text));
}

static void assert_range(const char *text, int64_t from, int64_t to)
{
	struct number_ranges ranges = parse(text);

	assert_int_equal(ranges.count, 1);
	assert_int_equal(ranges.items[0].from, from);
	assert_int_equal(ranges.items[0].to, to);
}

static void a_range_has_both_its_ends(void **state)
{
	assert_range("5", 5, 5);
	assert_range("2-3", 2, 3);
	assert_range("4-4", 4, 4);
	assert_range("0-9223372036854775807", 0, INT64_MAX);
}

static void numbers_are_decimal_or_hexadecimal(void **state)
{
	assert_range("0x2664e", 0x2664e, 0x2664e);
	assert_range("0Xa-0xF", 10, 15);
	assert_range("010", 10, 10);
}

static void numbers_may_be_negative(void **state)
{
	assert_range("-1", -1, -1);
	assert_range("-3--1", -3, -1);
}

static void a_list_has_each_of_its_ranges(void **state)
{
	struct number_ranges ranges = parse("0,2-3,7");

	assert_int_equal(ranges.count, 3);
	assert_true(number_ranges_has(&ranges, 0) && number_ranges_has(&ranges, 3));
	assert_true(number_ranges_has(&ranges, 2) && number_ranges_has(&ranges, 7));
	assert_false(number_ranges_has(&ranges, 1) || number_ranges_has(&ranges, 4));
	assert_false(number_ranges_has(&ranges, -1) || number_ranges_has(&ranges, 8));
}

static void no_list_has_every_number(void **state)
{
	struct number_ranges ranges = { .count = 0 };

	assert_true(number_ranges_has(&ranges, -1));
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		",",
		",0",
		"0,",
		"0,,1",
		"0 1",
		" 0",
		"x",
		"0x",
		"0xg",
		"1-0",
		"0-",
		"--1",
		"1-2-3",
		"+1",
		"1.5",
		"1a",
		"-",
		"0x-1",
		"9223372036854775808",
		"0-99999999999999999999",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refuse(texts[i]);
}

static void a_list_has_a_bounded_length(void **state)
{
	char text[2 * NUMBER_RANGES_MAX + 2];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? ',' : '1';
	text[2 * NUMBER_RANGES_MAX - 1] = '\0';
	assert_int_equal(parse(text).count, NUMBER_RANGES_MAX);
	text[2 * NUMBER_RANGES_MAX - 1] = ',';
	text[2 * NUMBER_RANGES_MAX + 1] = '\0';
	refuse(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_has_both_its_ends),
		cmocka_unit_test(numbers_are_decimal_or_hexadecimal),
		cmocka_unit_test(numbers_may_be_negative),
		cmocka_unit_test(a_list_has_each_of_its_ranges),
		cmocka_unit_test(no_list_has_every_number),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_list_has_a_bounded_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
