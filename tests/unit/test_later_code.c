#include "decode/code/later_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 256 };

static const uint64_t base = 0xffffffff81000000;

struct fixture {
	uint8_t before[SIZE], after[SIZE];
	struct later_code later;
};

static void add(struct fixture *fixture)
{
	assert_int_equal(later_code_add(&fixture->later, base, fixture->before,
					(struct bytes){ fixture->after, SIZE }),
			 0);
}

/* What there is of `size` bytes at an offset; NULL where nothing changed. */
static const uint8_t *find(const struct fixture *fixture, uint64_t offset, size_t size)
{
	struct bytes bytes = later_code_find(&fixture->later, base + offset, size);

	assert_int_equal(bytes.size, bytes.data ? SIZE - offset : 0);
	return bytes.data;
}

static void what_is_as_before_is_not_kept(void **state)
{
	struct fixture fixture = { 0 };

	add(&fixture);
	assert_int_equal(fixture.later.changes.count, 0);
	assert_int_equal(fixture.later.image.count, 0);
	assert_null(find(&fixture, 0, 16));
	later_code_free(&fixture.later);
}

static void a_change_is_found_where_it_overlaps(void **state)
{
	struct fixture fixture = { 0 };

	fixture.after[101] = fixture.after[104] = 1;
	fixture.after[200] = 1;
	add(&fixture);
	assert_int_equal(fixture.later.changes.count, 2);
	assert_null(find(&fixture, 96, 5));
	assert_ptr_equal(find(&fixture, 97, 5), fixture.after + 97);
	assert_ptr_equal(find(&fixture, 104, 1), fixture.after + 104);
	assert_null(find(&fixture, 105, 5));
	assert_ptr_equal(find(&fixture, 200, 5), fixture.after + 200);
	assert_null(find(&fixture, 201, 5));
	later_code_free(&fixture.later);
}

static void pages_may_lie_apart(void **state)
{
	struct fixture fixture = { .after = { 1 } };

	add(&fixture);
	assert_int_equal(later_code_add(&fixture.later, base + 2 * SIZE, fixture.before,
					(struct bytes){ fixture.after, SIZE }),
			 0);
	assert_int_equal(fixture.later.changes.count, 2);
	assert_null(find(&fixture, 1, 15));
	assert_ptr_equal(later_code_find(&fixture.later, base + 2 * SIZE, 1).data, fixture.after);
	assert_null(later_code_find(&fixture.later, base + SIZE, 1).data);
	later_code_free(&fixture.later);
}

/* Add a page where [from, to) differs. */
static void add_page(struct fixture *fixture, unsigned number, unsigned from, unsigned to)
{
	static uint8_t pages[8][SIZE];

	memset(pages[number], 0, SIZE);
	memset(pages[number] + from, 1, to - from);
	assert_int_equal(later_code_add(&fixture->later, base + number * SIZE, fixture->before,
					(struct bytes){ pages[number], SIZE }),
			 0);
}

static void code_that_was_replaced_is_not_what_a_kernel_patches(void **state)
{
	struct fixture fixture = { 0 };
	const struct later_range *range;

	add_page(&fixture, 0, 10, 15);
	add_page(&fixture, 1, 100, 170);
	add_page(&fixture, 2, 0, 64);
	add_page(&fixture, 4, 200, SIZE);
	add_page(&fixture, 5, 0, 10); /* goes on with what is changed before it */
	add_page(&fixture, 6, 0, 63);
	assert_int_equal(fixture.later.ranges.count, 2);
	range = later_code_range(&fixture.later, base);
	assert_true(range->start == base + SIZE && range->end == base + 3 * SIZE);
	assert_true(range->since == UINT64_MAX);
	range = later_code_range(&fixture.later, range->end);
	assert_true(range->start == base + 5 * SIZE && range->end == base + 6 * SIZE);
	assert_null(later_code_range(&fixture.later, range->end));
	assert_int_equal(later_code_find(&fixture.later, base + 12, 5).size, SIZE - 12);
	assert_int_equal(later_code_find(&fixture.later, base + SIZE + 120, 5).size, 0);
	later_code_free(&fixture.later);
}

static void no_code_is_where_addresses_end(void **state)
{
	struct fixture fixture = { .after = { 1 } };

	assert_int_equal(later_code_add(&fixture.later, UINT64_MAX - SIZE + 1, fixture.before,
					(struct bytes){ fixture.after, SIZE }),
			 0);
	assert_int_equal(fixture.later.changes.count, 0);
	assert_int_equal(fixture.later.image.count, 0);
	later_code_free(&fixture.later);
}

/* Replaced pages of the kernel's memory, and what is loaded there later: a letter for each module,
 * b for BPF programs, - for nothing that is known; a blank is a page that was not replaced. */
static void replace_pages(struct later_code *later, struct symbols *symbols, const char *pages)
{
	static uint8_t before[4096], after[4096];
	static const char *const names[] = { "[x]", "[y]", "[z]" };

	memset(after, 'l', sizeof(after));
	for (unsigned i = 0; pages[i]; i++) {
		const uint64_t page = base + i * sizeof(after);
		struct symbol symbol = { .start = page + 16, .end = page + 32, .name = "function" };

		if (pages[i] == ' ')
			continue;
		assert_int_equal(
			later_code_add(later, page, before, (struct bytes){ after, sizeof(after) }),
			0);
		if (pages[i] == '-')
			continue;
		symbol.module = pages[i] == 'b' ? "[bpf]" : names[pages[i] - 'x'];
		assert_int_equal(symbols_add(symbols, &symbol), 0);
	}
	assert_int_equal(symbols_finish(symbols, true), 0);
	assert_int_equal(later_code_group(later, symbols), 0);
}

/* A digit for each range: the first that was replaced at the same time. */
static void assert_groups(const char *pages, const char *expected)
{
	struct later_code later = { 0 };
	struct symbols symbols = { 0 };
	char found[16] = "";

	replace_pages(&later, &symbols, pages);
	assert_true(later.ranges.count < sizeof(found));
	for (size_t i = 0; i < later.ranges.count; i++) {
		found[i] = (char)('0' + later.ranges.items[i].first);
		assert_true(later.ranges.items[i].since == UINT64_MAX);
		assert_ptr_equal(later_code_range(&later, later.ranges.items[i].start),
				 &later.ranges.items[i]);
	}
	assert_string_equal(found, expected);
	later_code_free(&later);
	symbols_free(&symbols);
}

static void a_module_is_replaced_as_a_whole(void **state)
{
	assert_groups("", "");
	assert_groups("xxx", "0");
	assert_groups("xx xx", "00");
	assert_groups("xxyy", "01");
	assert_groups("xx xyy y", "0022");
	assert_groups("zx yz", "0120");
}

static void other_code_is_replaced_page_by_page(void **state)
{
	assert_groups("--", "0");
	assert_groups("- -", "01");
	assert_groups("b b", "01");
	assert_groups("x-x", "010");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_as_before_is_not_kept),
		cmocka_unit_test(a_change_is_found_where_it_overlaps),
		cmocka_unit_test(pages_may_lie_apart),
		cmocka_unit_test(code_that_was_replaced_is_not_what_a_kernel_patches),
		cmocka_unit_test(no_code_is_where_addresses_end),
		cmocka_unit_test(a_module_is_replaced_as_a_whole),
		cmocka_unit_test(other_code_is_replaced_page_by_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
