#include "decode/base/spool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/open_files.h"

enum { LARGE = SPOOL_FROM, COUNT = 3 * SPOOL_FROM / 8 };

struct numbers {
	uint64_t *items;
	size_t count, room;
};

static void assert_counts(const struct numbers *numbers)
{
	for (size_t i = 0; i < numbers->count; i++)
		assert_int_equal(numbers->items[i], i);
}

/* From a handful to far more than what is kept in plain memory. */
static void an_array_keeps_what_was_pushed(void **state)
{
	struct numbers numbers = { 0 };

	for (uint64_t i = 0; i < COUNT; i++)
		assert_true(spool_push(&numbers, i));
	assert_int_equal(numbers.count, COUNT);
	assert_counts(&numbers);
	spool_vec_free(&numbers);
	assert_true(!numbers.items && !numbers.count && !numbers.room);
	spool_vec_free(&numbers);
}

static long pages_in_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	assert_int_equal(fclose(file), 0);
	return resident;
}

static void pages_that_were_given_back_come_again(void **state)
{
	const long page = sysconf(_SC_PAGESIZE);
	struct numbers numbers = { 0 };
	long before;

	for (uint64_t i = 0; i < COUNT; i++)
		assert_true(spool_push(&numbers, i));
	assert_counts(&numbers);
	before = pages_in_memory();
	spool_vec_rest(&numbers);
	assert_true(before - pages_in_memory() > COUNT * 8 / page / 2);
	assert_counts(&numbers);
	spool_vec_free(&numbers);
}

static void small_things_stay_as_they_are(void **state)
{
	struct numbers numbers = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		assert_true(spool_push(&numbers, i));
	spool_vec_rest(&numbers);
	assert_counts(&numbers);
	spool_vec_free(&numbers);
	spool_rest(NULL, 0);
	spool_free(NULL, 0);
}

static void what_is_new_is_zero_in_a_file(void **state)
{
	uint8_t *bytes = spool_new(LARGE);

	assert_non_null(bytes);
	for (size_t i = 0; i < LARGE; i++)
		assert_int_equal(bytes[i], 0);
	spool_free(bytes, LARGE);
}

/* To grow must not take all of it into memory. */
static void what_grows_in_a_file_is_not_copied(void **state)
{
	uint8_t *bytes = spool_realloc(NULL, 0, LARGE);
	const long page = sysconf(_SC_PAGESIZE);
	long before;

	assert_non_null(bytes);
	memset(bytes, 7, LARGE);
	spool_rest(bytes, LARGE);
	before = pages_in_memory();
	bytes = spool_realloc(bytes, LARGE, 4 * LARGE);
	assert_non_null(bytes);
	assert_true(pages_in_memory() - before < LARGE / page / 4);
	assert_true(bytes[0] == 7 && bytes[LARGE - 1] == 7 && !bytes[LARGE]);
	bytes[4 * LARGE - 1] = 1;
	spool_free(bytes, 4 * LARGE);
}

static void what_never_grows_takes_no_descriptor(void **state)
{
	const size_t before = open_files();
	uint8_t *fixed = spool_new(LARGE), *grown = spool_realloc(NULL, 0, LARGE);

	assert_true(fixed && grown);
	assert_int_equal(open_files(), before + 1);
	spool_free(fixed, LARGE);
	spool_free(grown, LARGE);
	assert_int_equal(open_files(), before);
}

static void where_no_files_can_be_made_another_place_will_do(void **state)
{
	uint8_t *bytes;

	assert_int_equal(setenv("TMPDIR", "/proc/self", 1), 0);
	bytes = spool_realloc(NULL, 0, LARGE);
	assert_non_null(bytes);
	memset(bytes, 7, LARGE);
	spool_rest(bytes, LARGE);
	assert_true(bytes[0] == 7 && bytes[LARGE - 1] == 7);
	spool_free(bytes, LARGE);
	assert_int_equal(unsetenv("TMPDIR"), 0);
}

static void where_there_is_no_room_nothing_changes(void **state)
{
	const struct rlimit small = { LARGE / 2, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	uint8_t *bytes = spool_realloc(NULL, 0, LARGE);

	assert_non_null(bytes);
	bytes[LARGE - 1] = 7;
	assert_false(spool_was_full());
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_null(spool_realloc(NULL, 0, LARGE));
	assert_true(spool_was_full());
	assert_null(spool_realloc(bytes, LARGE, 2 * LARGE));
	assert_int_equal(bytes[LARGE - 1], 7);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	spool_free(bytes, LARGE);
}

static void what_cannot_be_is_refused(void **state)
{
	struct numbers numbers = { 0 };

	assert_null(spool_realloc(NULL, 0, SIZE_MAX));
	assert_null(spool_realloc(NULL, 0, (size_t)1 << 62));
	assert_true(spool_push(&numbers, 5));
	assert_false(
		spool_grow((void **)&numbers.items, &numbers.room, numbers.room, SIZE_MAX / 4));
	assert_int_equal(numbers.items[0], 5);
	spool_vec_free(&numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_keeps_what_was_pushed),
		cmocka_unit_test(pages_that_were_given_back_come_again),
		cmocka_unit_test(small_things_stay_as_they_are),
		cmocka_unit_test(what_is_new_is_zero_in_a_file),
		cmocka_unit_test(what_grows_in_a_file_is_not_copied),
		cmocka_unit_test(what_never_grows_takes_no_descriptor),
		cmocka_unit_test(where_no_files_can_be_made_another_place_will_do),
		cmocka_unit_test(where_there_is_no_room_nothing_changes),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
