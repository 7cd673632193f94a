#include "decode/flow/visited_code.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MANY = 40 };

/* A range of a later copy is known by where it is. */
static struct later_range ranges[MANY];

static struct visited_code *get(struct visited_codes *codes, unsigned number)
{
	const struct visited_code key = { .later = &ranges[number] };

	return visited_codes_get(codes, &key);
}

/* In any order; `factor` has no divisor in common with MANY. */
static void get_all(struct visited_codes *codes, unsigned factor)
{
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(get(codes, i * factor % MANY)->later, &ranges[i * factor % MANY]);
}

static void each_is_in_the_list_once(void **state)
{
	struct visited_codes codes = { 0 };
	struct visited_code *first = get(&codes, 20);

	get_all(&codes, 7);
	get_all(&codes, 3);
	assert_int_equal(codes.count, MANY);
	assert_ptr_equal(codes.items[0], first);
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(codes.sorted[i]->later, &ranges[i]);
	visited_codes_free(&codes);
}

static void what_was_not_met_is_not_found(void **state)
{
	const struct visited_code met = { .later = &ranges[1] }, unmet = { .later = &ranges[2] };
	struct visited_codes codes = { 0 };

	assert_null(visited_codes_find(&codes, &met));
	(void)get(&codes, 1);
	assert_ptr_equal(visited_codes_find(&codes, &met), codes.items[0]);
	assert_null(visited_codes_find(&codes, &unmet));
	visited_codes_free(&codes);
}

static void votes_are_kept_with_the_code(void **state)
{
	struct visited_codes codes = { 0 };

	(void)get(&codes, 1);
	(void)get(&codes, 2);
	assert_true(visited_codes_vote(&codes, codes.items[0], 10, true));
	assert_int_equal(codes.items[0]->votes.seen, 1);
	assert_int_equal(codes.items[1]->votes.seen, 0);
	visited_codes_free(&codes);
}

static void a_list_that_was_freed_is_as_new(void **state)
{
	struct visited_codes codes = { 0 };

	get_all(&codes, 1);
	visited_codes_free(&codes);
	assert_int_equal(codes.count, 0);
	assert_int_equal(codes.sorted_room, 0);
	get_all(&codes, 1);
	visited_codes_free(&codes);
	visited_codes_free(&codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_in_the_list_once),
		cmocka_unit_test(what_was_not_met_is_not_found),
		cmocka_unit_test(votes_are_kept_with_the_code),
		cmocka_unit_test(a_list_that_was_freed_is_as_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
