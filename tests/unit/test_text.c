#include "decode/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The text is what is expected; it is empty afterwards. */
static void assert_text(struct text *text, const char *expected)
{
	assert_int_equal(text->size, strlen(expected));
	assert_memory_equal(text->data, expected, text->size);
	text->size = 0;
}

static void numbers_are_right_aligned_in_their_columns(void **state)
{
	struct text text = { 0 };

	text_hex(&text, 0, 0);
	text_hex(&text, 0xdeadbeef, 10);
	text_hex(&text, UINT64_MAX, 4);
	assert_text(&text, "0  deadbeefffffffffffffffff");
	text_dec(&text, 0, 3, '0');
	text_dec(&text, 42, 5, ' ');
	text_dec(&text, UINT64_MAX, 1, ' ');
	assert_text(&text, "000   4218446744073709551615");
	text_free(&text);
}

static void each_number_has_as_many_digits_as_it_needs(void **state)
{
	struct text text = { 0 };
	char expected[32];

	for (unsigned shift = 0; shift < 64; shift++)
		for (uint64_t less = 0; less < 2; less++) {
			uint64_t value = ((uint64_t)1 << shift) - less;

			(void)snprintf(expected, sizeof(expected), "%llx",
				       (unsigned long long)value);
			text_hex(&text, value, 0);
			assert_text(&text, expected);
			(void)snprintf(expected, sizeof(expected), "%llu",
				       (unsigned long long)value);
			text_dec(&text, value, 0, ' ');
			assert_text(&text, expected);
		}
	text_free(&text);
}

static void eight_digits_are_made_at_once(void **state)
{
	for (unsigned shift = 0; shift < 32; shift++) {
		uint32_t value = 0x89abcdefu >> shift ^ 0x01234567u << shift;
		char expected[9];
		uint64_t digits = text_hex_digits(value);

		(void)snprintf(expected, sizeof(expected), "%08x", value);
		assert_memory_equal(&digits, expected, sizeof(digits));
	}
}

static void words_are_filled_up_but_never_cut(void **state)
{
	struct text text = { 0 };

	text_left(&text, "ab", 4);
	text_right(&text, "cd", 4);
	text_left(&text, "abcdef", 4);
	text_right(&text, "ghijkl", 4);
	assert_text(&text, "ab    cdabcdefghijkl");
	text_free(&text);
}

static void a_character_is_repeated(void **state)
{
	struct text text = { 0 };

	text_fill(&text, '-', 0);
	text_fill(&text, '-', 3);
	text_fill(&text, ' ', 1);
	assert_text(&text, "--- ");
	text_fill(&text, '=', 10000);
	assert_int_equal(text.size, 10000);
	assert_int_equal(text.data[9999], '=');
	text_free(&text);
}

static void the_last_digits_of_a_number(void **state)
{
	char digits[] = "......";

	text_digits(digits, 12345678, 5);
	assert_string_equal(digits, "45678.");
	text_digits(digits + 4, 9, 2);
	assert_string_equal(digits, "456709");
	text_digits(digits, 7, 1);
	text_digits(digits + 1, 8, 0);
	assert_string_equal(digits, "756709");
}

static void what_was_written_survives_growing(void **state)
{
	struct text text = { 0 };

	for (unsigned i = 0; i < 100000; i++)
		text_putc(&text, (char)('a' + i % 26));
	assert_false(text.failed);
	assert_int_equal(text.size, 100000);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(text.data[i], 'a' + i % 26);
	text_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_right_aligned_in_their_columns),
		cmocka_unit_test(each_number_has_as_many_digits_as_it_needs),
		cmocka_unit_test(eight_digits_are_made_at_once),
		cmocka_unit_test(words_are_filled_up_but_never_cut),
		cmocka_unit_test(a_character_is_repeated),
		cmocka_unit_test(the_last_digits_of_a_number),
		cmocka_unit_test(what_was_written_survives_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
