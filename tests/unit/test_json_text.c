#include "guest/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(const char *from, const char *expected)
{
	json_t *json = json_text(from);

	assert_non_null(json);
	assert_string_equal(json_string_value(json), expected);
	json_decref(json);
}

static void utf_8_is_taken_as_it_is(void **state)
{
	assert_text("", "");
	assert_text("b\xc3\xbcro \x01", "b\xc3\xbcro \x01");
}

static void other_bytes_become_question_marks(void **state)
{
	assert_text("b\xfcro", "b?ro");
	assert_text("\xc3\xbc\xff", "???");
}

static void what_is_not_utf_8_is_cut(void **state)
{
	char text[2 * JSON_TEXT_BYTES], expected[JSON_TEXT_BYTES];

	memset(text, 'x', sizeof(text));
	text[0] = '\xff';
	text[sizeof(text) - 1] = '\0';
	memset(expected, 'x', sizeof(expected));
	expected[0] = '?';
	expected[sizeof(expected) - 1] = '\0';
	assert_text(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf_8_is_taken_as_it_is),
		cmocka_unit_test(other_bytes_become_question_marks),
		cmocka_unit_test(what_is_not_utf_8_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
