#include "decode/base/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const unsigned items[] = { 10, 20, 20, 30 };

/* Of the first `count` items, how many are below `limit`? */
static size_t below(size_t count, unsigned limit)
{
	return search_sorted(count, i, items[i] < limit);
}

static void it_counts_those_that_come_before(void **state)
{
	static const struct {
		unsigned limit;
		size_t count;
	} cases[] = { { 0, 0 }, { 10, 0 }, { 11, 1 }, { 20, 1 }, { 21, 3 }, { 30, 3 }, { 31, 4 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t count = 0; count <= 4; count++)
			assert_int_equal(below(count, cases[i].limit),
					 cases[i].count < count ? cases[i].count : count);
}

static void what_is_counted_is_looked_at_once(void **state)
{
	size_t calls = 0;

	assert_int_equal(search_sorted((calls++, (size_t)4), i, items[i] < 25), 3);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_those_that_come_before),
		cmocka_unit_test(what_is_counted_is_looked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
