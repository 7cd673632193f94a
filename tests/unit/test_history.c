#include "decode/code/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void finish(struct history *history)
{
	size_t dropped;

	assert_int_equal(history_finish(history, &dropped), 0);
	assert_int_equal(dropped, 0);
}

static void the_last_item_before_the_time_is_found(void **state)
{
	struct history history = { 0 };
	struct history_view view;

	assert_int_equal(history_add(&history, 100, 200, 10), 0);
	assert_int_equal(history_add(&history, 150, 250, 20), 0);
	finish(&history);
	view = history_find(&history, 160, 15);
	assert_int_equal(view.item, 0);
	assert_int_equal(view.next, 1);
	assert_true(view.start == 150 && view.end == 200);
	assert_true(view.from == 10 && view.to == 20);
	view = history_find(&history, 160, 20);
	assert_int_equal(view.item, 1);
	assert_true(view.from == 20 && view.to == UINT64_MAX);
	history_free(&history);
}

static void before_an_item_there_is_nothing_until_it_comes(void **state)
{
	struct history history = { 0 };
	struct history_view view;

	assert_int_equal(history_add(&history, 100, 200, 10), 0);
	finish(&history);
	view = history_find(&history, 199, 9);
	assert_int_equal(view.item, HISTORY_NONE);
	assert_int_equal(view.next, 0);
	assert_true(view.from == 0 && view.to == 10);
	history_free(&history);
}

static void between_items_the_view_ends_at_the_next(void **state)
{
	struct history history = { 0 };
	struct history_view view;

	assert_int_equal(history_add(&history, 100, 200, 10), 0);
	assert_int_equal(history_add(&history, 300, 300, 10), 0);
	assert_int_equal(history_add(&history, 400, 350, 10), 0);
	finish(&history);
	view = history_find(&history, 50, 10);
	assert_true(view.item == HISTORY_NONE && view.end == 100);
	view = history_find(&history, 250, 10);
	assert_true(view.item == HISTORY_NONE && view.start == 200 && view.end == 300);
	view = history_find(&history, 1000, 10);
	assert_true(view.item == HISTORY_NONE && view.end == 0);
	history_free(&history);
}

static void an_empty_history_has_nothing(void **state)
{
	struct history history = { 0 };
	struct history_view view;

	finish(&history);
	view = history_find(&history, 5, 5);
	assert_true(view.item == HISTORY_NONE && view.next == HISTORY_NONE);
	assert_true(view.start == 0 && view.end == 0 && view.to == UINT64_MAX);
	history_free(&history);
}

/* Against the obvious way: go through all items. */
static void random_histories_agree_with_a_search_of_all_items(void **state)
{
	for (unsigned seed = 0; seed < 30; seed++) {
		struct history history = { 0 };

		srandom(seed);
		for (uint64_t i = 0; i < 40; i++) {
			uint64_t start = (uint64_t)random() % 100;
			uint64_t end = start + (uint64_t)random() % 30;

			assert_int_equal(history_add(&history, start, end, i / 2), 0);
		}
		finish(&history);
		for (uint64_t address = 0; address < 140; address++) {
			uint64_t time = (uint64_t)random() % 22;
			int64_t found = HISTORY_NONE;

			for (int64_t i = 0; i < 40; i++) {
				const struct history_item *item = &history.list.items[i];

				if (item->start <= address && address < item->end &&
				    item->time <= time)
					found = i;
			}
			assert_int_equal(history_find(&history, address, time).item, found);
		}
		history_free(&history);
	}
}

/* The history of one process may be cut into many pieces, but not that of each of thousands. */
static void pieces_are_bounded_by_the_number_of_items(void **state)
{
	enum { COUNT = 3000 };
	struct history history = { 0 };
	size_t dropped;

	for (uint64_t i = 0; i < COUNT; i++)
		assert_int_equal(history_add(&history, i, 20000 - i, i), 0);
	assert_int_equal(history_finish(&history, &dropped), 0);
	assert_true(dropped > 0);
	assert_true(history.first[history.border_count] <=
		    HISTORY_HELD_FREE + COUNT * HISTORY_HELD_EACH);
	history_free(&history);
}

static void few_items_may_all_overlap(void **state)
{
	struct history history = { 0 };

	for (uint64_t i = 0; i < 250; i++)
		assert_int_equal(history_add(&history, i, 20000 - i, i), 0);
	finish(&history);
	assert_int_equal(history_find(&history, 10000, 1000).item, 249);
	history_free(&history);
}

/* 6000 items that all overlap would make 36 million pieces. */
static void too_much_overlap_is_left_out_and_said(void **state)
{
	struct history history = { 0 };
	size_t dropped;

	for (uint64_t i = 0; i < 6000; i++)
		assert_int_equal(history_add(&history, i, 20000 - i, i), 0);
	assert_int_equal(history_finish(&history, &dropped), 0);
	assert_true(dropped > 0 && dropped < 6000);
	assert_int_equal(history_find(&history, 0, 0).item, 0);
	history_free(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_item_before_the_time_is_found),
		cmocka_unit_test(before_an_item_there_is_nothing_until_it_comes),
		cmocka_unit_test(between_items_the_view_ends_at_the_next),
		cmocka_unit_test(an_empty_history_has_nothing),
		cmocka_unit_test(random_histories_agree_with_a_search_of_all_items),
		cmocka_unit_test(pieces_are_bounded_by_the_number_of_items),
		cmocka_unit_test(few_items_may_all_overlap),
		cmocka_unit_test(too_much_overlap_is_left_out_and_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
