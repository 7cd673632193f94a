#include "decode/base/sort.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct item {
	int32_t a;
	uint64_t b;
};

SORT_BY(by_b, struct item, b)
SORT_BY_TWO(by_both, struct item, a, b)

static void items_are_sorted_by_a_number_in_them(void **state)
{
	struct item items[] = { { 1, UINT64_MAX }, { 2, 0 }, { 3, 1 } };
	struct {
		struct item *items;
		size_t count;
	} list = { items, 3 };

	sort_vec(&list, by_b);
	assert_int_equal(items[0].a, 2);
	assert_int_equal(items[1].a, 3);
	assert_int_equal(items[2].a, 1);
}

static void a_second_number_decides_where_the_first_is_equal(void **state)
{
	const struct item item = { -1, 5 };

	assert_int_equal(by_both(&item, &(struct item){ -1, 5 }), 0);
	assert_int_equal(by_both(&item, &(struct item){ -1, 6 }), -1);
	assert_int_equal(by_both(&item, &(struct item){ -1, 4 }), 1);
	assert_int_equal(by_both(&item, &(struct item){ 0, 4 }), -1);
	assert_int_equal(by_both(&item, &(struct item){ -2, 6 }), 1);
}

static void an_empty_list_is_sorted(void **state)
{
	struct {
		struct item *items;
		size_t count;
	} list = { 0 };

	sort_vec(&list, by_b);
	assert_null(list.items);
}

static void numbers_are_compared_as_they_are(void **state)
{
	const uint64_t numbers[] = { 0, 1, UINT64_MAX };

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			assert_int_equal(sort_numbers(&numbers[i], &numbers[k]), (i > k) - (i < k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_sorted_by_a_number_in_them),
		cmocka_unit_test(a_second_number_decides_where_the_first_is_equal),
		cmocka_unit_test(an_empty_list_is_sorted),
		cmocka_unit_test(numbers_are_compared_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
