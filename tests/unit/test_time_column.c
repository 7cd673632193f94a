/* time_column: times that depend on the lines before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/time_column.h"

static void filled(struct time_column *column, const char *lines, uint64_t time_ns,
		   const char *expected)
{
	time_column_fill(column, lines, strlen(lines), time_ns);
	text_putc(&column->text, 0);
	assert_string_equal(column->text.data, expected);
}

static void a_time_has_six_or_nine_digits(void **state)
{
	struct text text = { 0 };

	time_column_text(&text, 26867601112, false);
	time_column_text(&text, 26867601112, true);
	text_putc(&text, 0);
	assert_string_equal(text.data, "   26.867601:    26.867601112: ");
	text_free(&text);
}

static void relative_times_count_from_the_first_line(void **state)
{
	struct time_column column = { .relative = true, .nanoseconds = true };

	filled(&column, "a \037x\n", 5000000007, "a     0.000000000: x\n");
	filled(&column, "a \037x\nb \037y\n", 6000000009,
	       "a     1.000000002: x\nb     1.000000002: y\n");
	text_free(&column.text);
}

static void delta_times_count_from_the_former_line(void **state)
{
	struct time_column column = { .delta = true, .nanoseconds = true };

	filled(&column, "\037x\n", 10, "    0.000000000: x\n");
	filled(&column, "\037x\n\037y\n", 17, "    0.000000007: x\n    0.000000000: y\n");
	text_free(&column.text);
}

static void made_up_records_have_no_time_to_count_from(void **state)
{
	struct time_column relative = { .relative = true }, delta = { .delta = true };

	filled(&relative, "\037mmap\n", 0, "    0.000000: mmap\n");
	filled(&relative, "\037x\n", 3000000000, "    0.000000: x\n");
	filled(&relative, "\037y\n", 3000001000, "    0.000001: y\n");
	filled(&delta, "\037mmap\n", 0, "    0.000000: mmap\n");
	filled(&delta, "\037x\n", 3000000000, "    0.000000: x\n");
	filled(&delta, "\037y\n", 3000001000, "    0.000001: y\n");
	text_free(&relative.text);
	text_free(&delta.text);
}

static void a_line_without_a_mark_stays_as_it_is(void **state)
{
	struct time_column column = { .relative = true };

	filled(&column, " instruction trace error\n\n", 10, " instruction trace error\n\n");
	assert_int_equal(column.first, 0);
	text_free(&column.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_has_six_or_nine_digits),
		cmocka_unit_test(relative_times_count_from_the_first_line),
		cmocka_unit_test(delta_times_count_from_the_former_line),
		cmocka_unit_test(made_up_records_have_no_time_to_count_from),
		cmocka_unit_test(a_line_without_a_mark_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
