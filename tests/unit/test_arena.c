#include "decode/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void memory_is_zeroed_aligned_and_nobody_elses(void **state)
{
	enum { COUNT = 2000 };
	struct arena arena = { 0 };
	uint8_t *pieces[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		pieces[i] = arena_alloc(&arena, i);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(pieces[i][k], 0);
		memset(pieces[i], (int)i, i);
	}
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_equal(pieces[i][k], (uint8_t)i);
	arena_free(&arena);
}

static void a_large_piece_is_as_good_as_a_small_one(void **state)
{
	struct arena arena = { 0 };
	uint8_t *large = arena_alloc(&arena, 3 << 20);

	assert_non_null(large);
	memset(large, 1, 3 << 20);
	assert_in_range(arena.total, 3 << 20, 4 << 20);
	assert_int_equal((uintptr_t)arena.chunks % (2 << 20), 0);
	assert_non_null(arena_alloc(&arena, 1));
	arena_free(&arena);
}

static void huge_pages_hold_the_same(void **state)
{
	enum { COUNT = 20000, SIZE = 208 };
	struct arena arena = { .is_huge = true };
	uint8_t *pieces[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		pieces[i] = arena_alloc(&arena, SIZE);
		assert_non_null(pieces[i]);
		assert_true(!pieces[i][0] && !pieces[i][SIZE - 1]);
		memset(pieces[i], (int)i, SIZE);
	}
	assert_int_equal((uintptr_t)arena.chunks % (2 << 20), 0);
	assert_in_range(arena.total, COUNT * SIZE, COUNT * SIZE + (2 << 20));
	for (size_t i = 0; i < COUNT; i++)
		assert_true(pieces[i][0] == (uint8_t)i && pieces[i][SIZE - 1] == (uint8_t)i);
	arena_free(&arena);
	assert_true(arena.is_huge && !arena.total);
}

static void lines_begin_at_64_bytes(void **state)
{
	struct arena arena = { 0 };

	for (size_t i = 0; i < 1000; i++) {
		void *line = arena_alloc_line(&arena, i);

		assert_non_null(line);
		assert_int_equal((uintptr_t)line % 64, 0);
		memset(line, 0xff, i);
		(void)arena_alloc(&arena, i % 48);
	}
	arena_free(&arena);
}

static void a_copied_string_ends_where_it_was_cut(void **state)
{
	struct arena arena = { 0 };

	assert_string_equal(arena_strndup(&arena, "vmlinux.o", 7), "vmlinux");
	assert_string_equal(arena_strndup(&arena, "", 0), "");
	arena_free(&arena);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
	struct arena arena = { 0 };

	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 15));
	arena_free(&arena);
}

/* Far more than lies in plain memory. */
static void a_spooled_arena_holds_the_same_when_pages_were_given_back(void **state)
{
	enum { COUNT = 100, SIZE = 1 << 20 };
	struct arena arena = { .is_spooled = true };
	uint8_t *pieces[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		pieces[i] = arena_alloc(&arena, SIZE);
		assert_non_null(pieces[i]);
		assert_true(!pieces[i][0] && !pieces[i][SIZE - 1]);
		memset(pieces[i], (int)i, SIZE);
		arena_rest(&arena);
	}
	for (size_t i = 0; i < COUNT; i++)
		assert_true(pieces[i][0] == (uint8_t)i && pieces[i][SIZE - 1] == (uint8_t)i);
	arena_free(&arena);
	assert_true(arena.is_spooled && !arena.total);
}

static void a_freed_arena_can_be_used_again(void **state)
{
	struct arena arena = { 0 };

	(void)arena_alloc(&arena, 100);
	arena_free(&arena);
	assert_int_equal(arena.total, 0);
	assert_non_null(arena_alloc(&arena, 100));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_nobody_elses),
		cmocka_unit_test(a_large_piece_is_as_good_as_a_small_one),
		cmocka_unit_test(huge_pages_hold_the_same),
		cmocka_unit_test(lines_begin_at_64_bytes),
		cmocka_unit_test(a_copied_string_ends_where_it_was_cut),
		cmocka_unit_test(a_size_that_cannot_be_is_refused),
		cmocka_unit_test(a_spooled_arena_holds_the_same_when_pages_were_given_back),
		cmocka_unit_test(a_freed_arena_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
