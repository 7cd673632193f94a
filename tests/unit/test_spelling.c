#include "decode/base/spelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *nearest(const char *word)
{
	static const char *const names[] = { "record", "script", "ns", "cpu",
					     "a-name-of-more-than-32-letters-xx" };
	struct spelling spelling = { .word = word };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		spelling_try(&spelling, names[i]);
	return spelling.nearest;
}

static void two_letters_may_be_wrong(void **state)
{
	assert_string_equal(nearest("recrod"), "record");
	assert_string_equal(nearest("recor"), "record");
	assert_string_equal(nearest("rescript"), "script");
	assert_string_equal(nearest("cpx"), "cpu");
	assert_null(nearest("rexxxd"));
}

static void of_a_short_name_half_must_be_right(void **state)
{
	assert_string_equal(nearest("ms"), "ns");
	assert_null(nearest("xy"));
	assert_null(nearest(""));
}

static void the_nearest_counts_whatever_the_order(void **state)
{
	static const char *const names[] = { "guestmodule", "guestmodules", "guestmodulus" };
	struct spelling spelling = { .word = "guestmoduless" };

	for (size_t i = 0; i < 3; i++)
		spelling_try(&spelling, names[i]);
	assert_string_equal(spelling.nearest, "guestmodules");
	assert_int_equal(spelling.distance, 1);
}

static void very_long_names_are_never_meant(void **state)
{
	assert_null(nearest("a-name-of-more-than-32-letters-xx"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_letters_may_be_wrong),
		cmocka_unit_test(of_a_short_name_half_must_be_right),
		cmocka_unit_test(the_nearest_counts_whatever_the_order),
		cmocka_unit_test(very_long_names_are_never_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
