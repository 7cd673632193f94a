#include "host/check_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void items_are_kept_in_their_order(void **state)
{
	struct check_list list = { 0 };

	check_add(&list, "first", CHECK_WARNING, "do this", "%d of %s", 3, "them");
	check_add(&list, "second", CHECK_BLOCKS, NULL, "%s", "");
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].name, "first");
	assert_int_equal(list.items[0].verdict, CHECK_WARNING);
	assert_string_equal(list.items[0].value, "3 of them");
	assert_string_equal(list.items[0].remedy, "do this");
	assert_string_equal(list.items[1].name, "second");
	assert_int_equal(list.items[1].verdict, CHECK_BLOCKS);
	assert_string_equal(list.items[1].value, "");
	assert_null(list.items[1].remedy);
}

static void what_is_ok_needs_no_remedy(void **state)
{
	struct check_list list = { 0 };

	check_add(&list, "x", CHECK_OK, "do this", "fine");
	assert_null(list.items[0].remedy);
}

/* Names of processes and domains are chosen by others. */
static void values_cannot_write_to_the_terminal(void **state)
{
	struct check_list list = { 0 };

	check_add(&list, "x", CHECK_OK, NULL, " ~\x7f\033[2Ja\nb\xff%s", "\x9b");
	assert_string_equal(list.items[0].value, " ~??[2Ja?b??");
}

static void a_long_value_is_cut(void **state)
{
	struct check_list list = { 0 };

	check_add(&list, "x", CHECK_OK, NULL, "%01000d", 7);
	assert_int_equal(strlen(list.items[0].value), sizeof(list.items[0].value) - 1);
}

static void there_is_room_for_all_that_is_checked(void **state)
{
	struct check_list list = { 0 };

	for (int i = 0; i < CHECK_MAX_ITEMS; i++)
		check_add(&list, "x", CHECK_BLOCKS, NULL, "%d", i);
	assert_string_equal(list.items[CHECK_MAX_ITEMS - 1].value, "47");
	assert_int_equal(check_count(&list, CHECK_BLOCKS), CHECK_MAX_ITEMS);
}

static void verdicts_are_counted(void **state)
{
	static const enum check_verdict verdicts[] = { CHECK_WARNING, CHECK_BLOCKS, CHECK_WARNING };
	struct check_list list = { 0 };

	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		check_add(&list, "x", verdicts[i], NULL, "x");
	assert_int_equal(check_count(&list, CHECK_OK), 0);
	assert_int_equal(check_count(&list, CHECK_WARNING), 2);
	assert_int_equal(check_count(&list, CHECK_BLOCKS), 1);
}

static void each_verdict_has_a_word(void **state)
{
	assert_string_equal(check_verdict_text(CHECK_OK), "ok");
	assert_string_equal(check_verdict_text(CHECK_WARNING), "warning");
	assert_string_equal(check_verdict_text(CHECK_BLOCKS), "blocks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_kept_in_their_order),
		cmocka_unit_test(what_is_ok_needs_no_remedy),
		cmocka_unit_test(values_cannot_write_to_the_terminal),
		cmocka_unit_test(a_long_value_is_cut),
		cmocka_unit_test(there_is_room_for_all_that_is_checked),
		cmocka_unit_test(verdicts_are_counted),
		cmocka_unit_test(each_verdict_has_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
