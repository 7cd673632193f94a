/* printable: names of others cannot move cursors. */
#include "decode/base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Checks both ways, in place and written, and that nothing behind `size` changes. */
static void reads(const char *name, size_t size, const char *expected)
{
	char copy[64] = "", *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);

	memcpy(copy, name, strlen(name));
	printable(copy, size);
	assert_memory_equal(copy, expected, size);
	assert_string_equal(copy + size, name + size);
	assert_non_null(out);
	printable_write(name, size, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(length, size);
	assert_memory_equal(written, expected, size);
	free(written);
}

static void names_stay_as_they_are(void **state)
{
	reads("CPU 0/KVM", 9, "CPU 0/KVM");
	reads("gr\303\274\303\237e \342\202\254", 10, "gr\303\274\303\237e \342\202\254");
	reads("\377\200\302\240 latin", 10, "\377\200\302\240 latin");
	reads("", 0, "");
}

static void what_terminals_obey_is_a_question_mark(void **state)
{
	reads("\033[31mred", 8, "?[31mred");
	reads("a\nb\tc\001\037\177", 8, "a?b?c???");
	reads("x\302\233y\302\200\302\237", 8, "x??y????");
}

static void what_follows_is_not_looked_at(void **state)
{
	reads("ab\302\233", 3, "ab\302");
	reads("ab\ncd\n", 2, "ab");
}

static void no_place_in_a_long_name_is_passed_over(void **state)
{
	static const unsigned char controls[] = { 0, 1, 0x1f, 0x7f };

	for (size_t size = 1; size < 40; size++)
		for (size_t at = 0; at < size; at++)
			for (size_t i = 0; i < sizeof(controls); i++) {
				char name[40], expected[40];

				memset(name, i % 2 ? ' ' : '~', sizeof(name));
				name[at] = (char)controls[i];
				memcpy(expected, name, sizeof(expected));
				expected[at] = '?';
				printable(name, size);
				assert_memory_equal(name, expected, sizeof(name));
			}
}

static void a_whole_name_is_written(void **state)
{
	char *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);

	assert_non_null(out);
	printable_puts("a\033b", out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(written, "a?b");
	free(written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_stay_as_they_are),
		cmocka_unit_test(what_terminals_obey_is_a_question_mark),
		cmocka_unit_test(what_follows_is_not_looked_at),
		cmocka_unit_test(no_place_in_a_long_name_is_passed_over),
		cmocka_unit_test(a_whole_name_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
