#include "decode/code/text_poke.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

#define TEXT 0xffffffff81000000u

enum { SIZE = 16 };

static const uint8_t code[] = "kkkkkkkkkkkkkkkk";

static void poke(struct text_pokes *pokes, uint64_t time, uint64_t address, const char *old_bytes,
		 const char *new_bytes)
{
	const struct perf_text_poke new_poke = { .address = address,
						 .old_size = (uint32_t)strlen(old_bytes),
						 .new_size = (uint32_t)strlen(new_bytes),
						 .old_bytes = (const uint8_t *)old_bytes,
						 .new_bytes = (const uint8_t *)new_bytes };

	assert_int_equal(text_pokes_add(pokes, &new_poke, time), 0);
}

static void finish(struct text_pokes *pokes)
{
	size_t dropped = 1;

	assert_int_equal(text_pokes_finish(pokes, &dropped), 0);
	assert_int_equal(dropped, 0);
}

/* The bytes from an address on at a time, "" where there is no code. */
static void assert_text(const struct text_pokes *pokes, uint64_t address, uint64_t time,
			const char *expected)
{
	struct image_piece piece = { TEXT, TEXT + SIZE, code };
	const struct image image = { &piece, 1, 1 };
	struct text_view view;
	int r = text_pokes_find(pokes, &image, address, time, &view);

	assert_int_equal(r, *expected ? 0 : -PTVM_NO_CODE);
	assert_int_equal(view.left, strlen(expected));
	assert_true(view.from <= time && time < view.to);
	if (*expected)
		assert_memory_equal(view.data, expected, strlen(expected));
	else
		assert_null(view.data);
}

static void without_pokes_it_is_the_image(void **state)
{
	struct text_pokes pokes = { 0 };

	finish(&pokes);
	assert_text(&pokes, TEXT, 0, "kkkkkkkkkkkkkkkk");
	assert_text(&pokes, TEXT + SIZE - 1, UINT64_MAX - 1, "k");
	assert_text(&pokes, TEXT + SIZE, 0, "");
	assert_text(&pokes, TEXT - 1, 0, "");
	text_pokes_free(&pokes);
}

static void bytes_are_those_of_the_last_poke_before(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT + 4, "old", "new");
	poke(&pokes, 20, TEXT + 4, "new", "NEW");
	finish(&pokes);
	assert_text(&pokes, TEXT + 4, 9, "old");
	assert_text(&pokes, TEXT + 4, 10, "new");
	assert_text(&pokes, TEXT + 4, 19, "new");
	assert_text(&pokes, TEXT + 5, 20, "EW");
	assert_text(&pokes, TEXT + 3, 20, "k");
	assert_text(&pokes, TEXT + 7, 20, "kkkkkkkkk");
	text_pokes_free(&pokes);
}

static void views_tell_from_when_to_when_they_hold(void **state)
{
	struct text_pokes pokes = { 0 };
	struct image none = { 0 };
	struct text_view view;

	poke(&pokes, 10, TEXT, "a", "b");
	poke(&pokes, 20, TEXT, "b", "c");
	finish(&pokes);
	assert_int_equal(text_pokes_find(&pokes, &none, TEXT, 5, &view), 0);
	assert_true(view.from == 0 && view.to == 10);
	assert_int_equal(text_pokes_find(&pokes, &none, TEXT, 15, &view), 0);
	assert_true(view.from == 10 && view.to == 20);
	assert_int_equal(text_pokes_find(&pokes, &none, TEXT, 25, &view), 0);
	assert_true(view.from == 20 && view.to == UINT64_MAX);
	assert_int_equal(text_pokes_find(&pokes, &none, TEXT + 1, 25, &view), -PTVM_NO_CODE);
	assert_true(view.from == 0 && view.to == UINT64_MAX);
	text_pokes_free(&pokes);
}

/* What is written where nothing was known before, and removed again. */
static void text_comes_and_goes(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT + 100, "", "made");
	poke(&pokes, 20, TEXT + 100, "made", "");
	finish(&pokes);
	assert_text(&pokes, TEXT + 100, 9, "");
	assert_text(&pokes, TEXT + 102, 10, "de");
	assert_text(&pokes, TEXT + 100, 20, "");
	text_pokes_free(&pokes);
}

static void removed_text_is_no_code_whatever_the_image_has(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT + 4, "gone", "");
	finish(&pokes);
	assert_text(&pokes, TEXT + 4, 10, "");
	assert_text(&pokes, TEXT, 10, "kkkk");
	assert_text(&pokes, TEXT + 8, 10, "kkkkkkkk");
	text_pokes_free(&pokes);
}

/* A function's entry in BPF programs is shorter than what replaces it. */
static void old_and_new_may_differ_in_size(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT, "abcd", "AB");
	poke(&pokes, 10, TEXT + 8, "ab", "ABCD");
	finish(&pokes);
	assert_text(&pokes, TEXT + 1, 9, "bcd");
	assert_text(&pokes, TEXT + 1, 10, "B");
	assert_text(&pokes, TEXT + 2, 10, ""); /* removed with what it was part of */
	assert_text(&pokes, TEXT + 8, 9, "ab");
	assert_text(&pokes, TEXT + 10, 9, "kk");
	assert_text(&pokes, TEXT + 10, 10, "CD");
	text_pokes_free(&pokes);
}

/* Of a longer poke only as much is left as no other one lies over. */
static void a_poke_ends_where_another_begins(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT, "abcdef", "ABCDEF");
	poke(&pokes, 20, TEXT + 2, "CD", "xy");
	finish(&pokes);
	assert_text(&pokes, TEXT, 5, "ab");
	assert_text(&pokes, TEXT, 30, "AB");
	assert_text(&pokes, TEXT + 2, 30, "xy");
	assert_text(&pokes, TEXT + 4, 30, "EF");
	assert_text(&pokes, TEXT + 2, 15, "CD");
	text_pokes_free(&pokes);
}

static void a_poke_of_no_bytes_changes_nothing(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, TEXT, "", "");
	finish(&pokes);
	assert_int_equal(pokes.list.count, 0);
	assert_text(&pokes, TEXT, 20, "kkkkkkkkkkkkkkkk");
	text_pokes_free(&pokes);
}

static void a_poke_beyond_all_addresses_is_left_out(void **state)
{
	struct text_pokes pokes = { 0 };

	poke(&pokes, 10, UINT64_MAX - 2, "", "wrap");
	assert_int_equal(pokes.list.count, 0);
	poke(&pokes, 10, UINT64_MAX - 4, "", "last");
	finish(&pokes);
	assert_text(&pokes, UINT64_MAX - 2, 10, "st");
	assert_text(&pokes, 0, 10, "");
	text_pokes_free(&pokes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_pokes_it_is_the_image),
		cmocka_unit_test(bytes_are_those_of_the_last_poke_before),
		cmocka_unit_test(views_tell_from_when_to_when_they_hold),
		cmocka_unit_test(text_comes_and_goes),
		cmocka_unit_test(removed_text_is_no_code_whatever_the_image_has),
		cmocka_unit_test(old_and_new_may_differ_in_size),
		cmocka_unit_test(a_poke_ends_where_another_begins),
		cmocka_unit_test(a_poke_of_no_bytes_changes_nothing),
		cmocka_unit_test(a_poke_beyond_all_addresses_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
