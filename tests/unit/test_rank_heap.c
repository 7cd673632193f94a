#include "decode/base/rank_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/sim_random.h"

enum { THINGS = 100, ROUNDS = 10000 };

static uint64_t lowest(const struct ranked *things, size_t count)
{
	uint64_t rank = RANK_LAST;

	for (size_t i = 0; i < count; i++)
		rank = things[i].rank < rank ? things[i].rank : rank;
	return rank;
}

static void the_lowest_is_first_however_ranks_change(void **state)
{
	struct ranked things[THINGS] = { 0 };
	struct sim_random random = { 5 };
	struct rank_heap heap;

	assert_int_equal(rank_heap_init(&heap, THINGS), 0);
	for (size_t i = 0; i < THINGS; i++) {
		things[i].rank = sim_random_below(&random, THINGS);
		rank_heap_add(&heap, &things[i]);
		assert_int_equal(rank_heap_first(&heap)->rank, lowest(things, i + 1));
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		rank_heap_move(&heap, &things[sim_random_below(&random, THINGS)],
			       sim_random_below(&random, THINGS));
		assert_int_equal(rank_heap_first(&heap)->rank, lowest(things, THINGS));
	}
	rank_heap_free(&heap);
}

static void where_all_are_last_none_is_first(void **state)
{
	struct ranked things[2] = { { .rank = 7 }, { .rank = RANK_LAST } };
	struct rank_heap heap;

	assert_int_equal(rank_heap_init(&heap, 2), 0);
	assert_null(rank_heap_first(&heap));
	rank_heap_add(&heap, &things[1]);
	assert_null(rank_heap_first(&heap));
	rank_heap_add(&heap, &things[0]);
	assert_ptr_equal(rank_heap_first(&heap), &things[0]);
	rank_heap_move(&heap, &things[0], RANK_LAST);
	assert_null(rank_heap_first(&heap));
	rank_heap_move(&heap, &things[1], 3);
	assert_ptr_equal(rank_heap_first(&heap), &things[1]);
	rank_heap_free(&heap);
	rank_heap_free(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_is_first_however_ranks_change),
		cmocka_unit_test(where_all_are_last_none_is_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
