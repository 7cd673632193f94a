#include "decode/base/huge_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void whole_pages_are_zeroed_and_lie_at_their_borders(void **state)
{
	enum { COUNT = 5 };
	uint8_t *pages[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		size_t size = i * HUGE_PAGE + 1;

		pages[i] = huge_pages_map(size);
		assert_non_null(pages[i]);
		assert_int_equal((uintptr_t)pages[i] % HUGE_PAGE, 0);
		for (size_t k = 0; k < huge_pages_size(size); k += 512)
			assert_int_equal(pages[i][k], 0);
		memset(pages[i], (int)i + 1, huge_pages_size(size));
	}
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(pages[i][0], i + 1);
		assert_int_equal(pages[i][(i + 1) * HUGE_PAGE - 1], i + 1);
		huge_pages_unmap(pages[i], i * HUGE_PAGE + 1);
	}
	huge_pages_unmap(NULL, 1);
}

static void all_that_is_mapped_is_given_back(void **state)
{
	unsigned char resident;
	uint8_t *pages = huge_pages_map(HUGE_PAGE + 1);

	assert_non_null(pages);
	assert_int_equal(mincore(pages + HUGE_PAGE, 4096, &resident), 0);
	assert_int_not_equal(mincore(pages + 2 * HUGE_PAGE, HUGE_PAGE, &resident), 0);
	huge_pages_unmap(pages, HUGE_PAGE + 1);
	assert_int_not_equal(mincore(pages + HUGE_PAGE, 4096, &resident), 0);
}

static void memory_of_the_heap_grows_and_is_freed_as_any(void **state)
{
	uint8_t *pages = huge_pages_alloc(HUGE_PAGE), *more;

	assert_non_null(pages);
	assert_int_equal((uintptr_t)pages % HUGE_PAGE, 0);
	pages[HUGE_PAGE - 1] = 7;
	more = realloc(pages, 2 * HUGE_PAGE);
	assert_non_null(more);
	assert_int_equal(more[HUGE_PAGE - 1], 7);
	free(more);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
	assert_int_equal(huge_pages_size(SIZE_MAX), 0);
	assert_null(huge_pages_alloc(SIZE_MAX));
	assert_null(huge_pages_map(SIZE_MAX));
	assert_null(huge_pages_map(SIZE_MAX - 2 * HUGE_PAGE));
	assert_null(huge_pages_map(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_pages_are_zeroed_and_lie_at_their_borders),
		cmocka_unit_test(all_that_is_mapped_is_given_back),
		cmocka_unit_test(memory_of_the_heap_grows_and_is_freed_as_any),
		cmocka_unit_test(a_size_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
