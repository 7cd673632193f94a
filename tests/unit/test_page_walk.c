#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/page_walk.h"
#include "tests/fake_memory.h"

static const uint64_t kernel = 0xffffffff81000000;

struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
};

static char five_levels[] = "page tables have 5 levels";

/* The guest's page tables have 5 levels where the test's initial state is `five_levels`. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_memory_init(&fixture->memory, 256 << 10, *state != NULL);
	page_walk_init(&fixture->walk, &fixture->memory.reader, fixture->memory.root);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fake_memory_deinit(&fixture->memory);
	free(fixture);
	return 0;
}

static int next(struct fixture *fixture, uint64_t address, struct page_run *ret)
{
	return page_walk_next(&fixture->walk, address, 0xffffffffff000000, ret, NULL);
}

static void assert_run(const struct page_run *run, uint64_t address, uint64_t physical,
		       uint64_t size)
{
	assert_int_equal(run->address, address);
	assert_int_equal(run->physical, physical);
	assert_int_equal(run->size, size);
}

static void pages_that_follow_each_other_are_one_run(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x3000, 0);
	fake_memory_map(&fixture->memory, kernel + 0x3000, 0x40000, 0x1000, 0);
	assert_int_equal(next(fixture, 0xffffffff80000000, &run), 1);
	assert_run(&run, kernel, 0x20000, 0x3000);
	assert_true(run.is_supervisor && run.is_executable);
	assert_int_equal(next(fixture, kernel + 0x3000, &run), 1);
	assert_run(&run, kernel + 0x3000, 0x40000, 0x1000);
	assert_int_equal(next(fixture, kernel + 0x4000, &run), 0);
}

static void a_run_is_cut_where_it_is_asked_for(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x4000, 0);
	assert_int_equal(
		page_walk_next(&fixture->walk, kernel + 0x1000, kernel + 0x3000, &run, NULL), 1);
	assert_run(&run, kernel + 0x1000, 0x21000, 0x2000);
}

static void rights_end_a_run(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x1000, 0);
	fake_memory_map(&fixture->memory, kernel + 0x1000, 0x21000, 0x1000, FAKE_MEMORY_DATA);
	fake_memory_map(&fixture->memory, kernel + 0x2000, 0x22000, 0x1000,
			FAKE_MEMORY_DATA | FAKE_MEMORY_USER);
	assert_int_equal(next(fixture, kernel, &run), 1);
	assert_run(&run, kernel, 0x20000, 0x1000);
	assert_int_equal(next(fixture, kernel + 0x1000, &run), 1);
	assert_run(&run, kernel + 0x1000, 0x21000, 0x1000);
	assert_true(run.is_supervisor && !run.is_executable);
	assert_int_equal(next(fixture, kernel + 0x2000, &run), 1);
	assert_false(run.is_supervisor);
}

/* A right that any level forbids is forbidden. */
static void rights_of_all_levels_count(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x1000, FAKE_MEMORY_USER);
	*fake_memory_entry(&fixture->memory, kernel, 3) |= FAKE_MEMORY_DATA;
	*fake_memory_entry(&fixture->memory, kernel, 2) &= ~FAKE_MEMORY_USER;
	assert_int_equal(next(fixture, kernel, &run), 1);
	assert_true(run.is_supervisor && !run.is_executable);
}

static void large_pages_are_found(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	/* Bit 12 of a large page's entry is no part of its address. */
	*fake_memory_entry(&fixture->memory, kernel, 2) = 0x40000000 | 1 << 12 | 1 << 7 | 1;
	assert_int_equal(next(fixture, kernel + 0x5000, &run), 1);
	assert_run(&run, kernel + 0x5000, 0x40005000, 0x1fb000);
	*fake_memory_entry(&fixture->memory, 0xffffffffc0000000, 3) = 0x80000000 | 1 << 7 | 1;
	page_walk_forget(&fixture->walk);
	assert_int_equal(
		page_walk_next(&fixture->walk, 0xffffffffc0000000, 0xffffffffc0400000, &run, NULL),
		1);
	assert_run(&run, 0xffffffffc0000000, 0x80000000, 0x400000);
}

static void memory_is_read_across_pages_and_holes(void **state)
{
	struct fixture *fixture = *state;
	uint8_t data[0x3000];

	memset(data, 0xee, sizeof(data));
	(void)fake_memory_put(&fixture->memory, kernel, "AB", 2, 0);
	(void)memset(fake_memory_put(&fixture->memory, kernel + 0x2000, "", 1, 0), 'C', 0x1000);
	assert_int_equal(page_walk_read(&fixture->walk, kernel + 1, data, 0x2fff, NULL), 0);
	assert_int_equal(data[0], 'B');
	assert_int_equal(data[0xfff], 0);
	assert_int_equal(data[0x1ffe], 0);
	assert_int_equal(data[0x1fff], 'C');
	assert_int_equal(data[0x2ffe], 'C');
	assert_int_equal(data[0x2fff], 0xee);
}

static void what_is_no_memory_reads_as_zeroes(void **state)
{
	struct fixture *fixture = *state;
	uint64_t word = 1;

	fake_memory_map(&fixture->memory, kernel, 0x7ffff000, 0x1000, 0);
	assert_int_equal(page_walk_read(&fixture->walk, kernel, &word, sizeof(word), NULL), 0);
	assert_int_equal(word, 0);
	assert_int_equal(page_walk_read(&fixture->walk, UINT64_MAX - 3, &word, sizeof(word), NULL),
			 0);
}

static void tables_that_are_no_memory_map_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	*fake_memory_entry(&fixture->memory, kernel, 3) = 0x7ffff000 | 1;
	assert_int_equal(next(fixture, 0xffff800000000000, &run), 0);
}

/* Every entry of a table leads to the table itself. */
static void tables_that_lead_to_themselves_end(void **state)
{
	struct fixture *fixture = *state;
	uint64_t *table = (uint64_t *)(fixture->memory.data + fixture->memory.root.cr3);
	struct page_run run;

	for (unsigned i = 0; i < 512; i++)
		table[i] = fixture->memory.root.cr3 | 1;
	assert_int_equal(next(fixture, kernel, &run), 1);
	assert_run(&run, kernel, fixture->memory.root.cr3, 0x1000);
}

static void tables_are_read_again_when_asked_for(void **state)
{
	struct fixture *fixture = *state;
	struct page_run run;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x1000, 0);
	assert_int_equal(next(fixture, kernel, &run), 1);
	fake_memory_map(&fixture->memory, kernel, 0x30000, 0x1000, 0);
	page_walk_forget(&fixture->walk);
	assert_int_equal(next(fixture, kernel, &run), 1);
	assert_run(&run, kernel, 0x30000, 0x1000);
}

/* All upper entries of the kernel's half lead to one table, whose tables are empty. */
static void holes_without_end_are_an_error(void **state)
{
	const uint64_t first = 0xffff800000000000;
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };
	struct page_run run;

	(void)fake_memory_entry(&fixture->memory, first, 1);
	for (unsigned level = 4; level > 1; level--) {
		uint64_t *entry = fake_memory_entry(&fixture->memory, first, level);
		unsigned count = level == 4 ? 256 : 512;

		for (unsigned i = 1; i < count; i++)
			entry[i] = *entry;
	}
	assert_int_equal(page_walk_next(&fixture->walk, first, kernel, &run, &error),
			 -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "the guest's page tables have more than 16777216 holes");
	page_walk_forget(&fixture->walk);
	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x1000, 0);
	assert_int_equal(next(fixture, kernel, &run), 1);
}

static void memory_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };
	struct page_run run;
	char c;

	fake_memory_map(&fixture->memory, kernel, 0x20000, 0x1000, 0);
	assert_int_equal(next(fixture, kernel, &run), 1);
	fixture->memory.fails = true;
	assert_int_equal(page_walk_read(&fixture->walk, kernel, &c, 1, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "no memory any more");
	page_walk_forget(&fixture->walk);
	assert_int_equal(next(fixture, kernel, &run), -PTVM_SYSTEM);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define TEST_5_LEVELS(test)                                                                        \
	cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, five_levels)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_that_follow_each_other_are_one_run),
		TEST_5_LEVELS(pages_that_follow_each_other_are_one_run),
		TEST(a_run_is_cut_where_it_is_asked_for),
		TEST(rights_end_a_run),
		TEST(rights_of_all_levels_count),
		TEST(large_pages_are_found),
		TEST_5_LEVELS(large_pages_are_found),
		TEST(memory_is_read_across_pages_and_holes),
		TEST_5_LEVELS(memory_is_read_across_pages_and_holes),
		TEST(what_is_no_memory_reads_as_zeroes),
		TEST(tables_that_are_no_memory_map_nothing),
		TEST(tables_that_lead_to_themselves_end),
		TEST(tables_are_read_again_when_asked_for),
		TEST(holes_without_end_are_an_error),
		TEST(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
