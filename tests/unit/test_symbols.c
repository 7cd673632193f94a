#include "decode/code/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct symbols *symbols, uint64_t start, uint64_t end, const char *name)
{
	assert_int_equal(symbols_add(symbols, &(struct symbol){ start, end, name, NULL, 0, 0 }), 0);
}

static const char *name_at(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbols_find(symbols, address);

	return symbol ? symbol->name : "-";
}

static void a_symbol_without_end_reaches_to_the_next(void **state)
{
	struct symbols symbols = { 0 };

	add(&symbols, 0x300, 0, "c");
	add(&symbols, 0x100, 0, "a");
	add(&symbols, 0x200, 0x210, "b");
	assert_int_equal(symbols_finish(&symbols, false), 0);
	assert_string_equal(name_at(&symbols, 0xff), "-");
	assert_string_equal(name_at(&symbols, 0x1ff), "a");
	assert_string_equal(name_at(&symbols, 0x20f), "b");
	assert_string_equal(name_at(&symbols, 0x210), "-");
	assert_string_equal(name_at(&symbols, 0x1fff), "c");
	assert_string_equal(name_at(&symbols, 0x2000), "-");
	symbols_free(&symbols);
}

static void the_last_before_a_module_ends_a_page_further_on(void **state)
{
	struct symbols symbols = { 0 };
	struct symbol module = { 0x100000, 0, "m", "[m]", false, false };

	add(&symbols, 0x1234, 0, "kernel");
	assert_int_equal(symbols_add(&symbols, &module), 0);
	assert_int_equal(symbols_finish(&symbols, true), 0);
	assert_string_equal(name_at(&symbols, 0x2fff), "kernel");
	assert_string_equal(name_at(&symbols, 0x3000), "-");
	symbols_free(&symbols);
}

/* Ends come first: only the last of them has a length, which counts most. */
static void of_doubles_without_size_the_last_is_kept(void **state)
{
	struct symbols symbols = { 0 };

	add(&symbols, 0x100, 0, "a_long_name");
	add(&symbols, 0x100, 0, "__b");
	add(&symbols, 0x200, 0, "c");
	assert_int_equal(symbols_finish(&symbols, true), 0);
	assert_string_equal(name_at(&symbols, 0x100), "__b");
	assert_int_equal(symbols_address(&symbols, "a_long_name"), 0x100);
	assert_int_equal(symbols_address(&symbols, "nobody"), 0);
	symbols_free(&symbols);
}

static void of_doubles_with_size_the_better_name_is_kept(void **state)
{
	static const struct symbol pairs[][2] = {
		{ { 0x100, 0x110, "good", NULL, false, false },
		  { 0x100, 0x110, "weakling", NULL, false, true } },
		{ { 0x100, 0x110, "good", NULL, true, false },
		  { 0x100, 0x110, "local", NULL, false, false } },
		{ { 0x100, 0x110, "good", NULL, true, false },
		  { 0x100, 0x110, "__bad", NULL, true, false } },
		{ { 0x100, 0x110, "good", NULL, true, false },
		  { 0x100, 0x110, "bad", NULL, true, false } },
	};

	for (size_t i = 0; i < 2 * sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct symbols symbols = { 0 };

		assert_int_equal(symbols_add(&symbols, &pairs[i / 2][i % 2]), 0);
		assert_int_equal(symbols_add(&symbols, &pairs[i / 2][1 - i % 2]), 0);
		assert_int_equal(symbols_finish(&symbols, false), 0);
		assert_string_equal(name_at(&symbols, 0x108), "good");
		symbols_free(&symbols);
	}
}

/* Sorted, like kallsyms, up to a tail in disorder; doubles must keep their order. */
static void any_disorder_is_sorted_and_stable(void **state)
{
	static const char *const names[] = { "first", "second" };

	for (unsigned seed = 1; seed < 60; seed++) {
		struct symbols symbols = { 0 };
		size_t head = seed * 7 % 50;

		srandom(seed);
		for (size_t i = 0; i < 100; i++)
			add(&symbols, i < head ? 10 * (i + 1) : 5 * ((uint64_t)random() % 200), 0,
			    names[i % 2]);
		add(&symbols, 5000, 0, names[0]);
		add(&symbols, 5000, 0, names[1]);
		assert_int_equal(symbols_finish(&symbols, true), 0);
		for (size_t i = 1; i < symbols.count; i++) {
			assert_true(symbols.items[i - 1].start < symbols.items[i].start);
			assert_int_equal(symbols.items[i - 1].end, symbols.items[i].start);
		}
		assert_string_equal(name_at(&symbols, 5000), "second");
		assert_int_equal(symbols.count + symbols.aliases.count, 102);
		symbols_free(&symbols);
	}
}

static void symbols_outside_the_code_are_dropped_and_ends_cut(void **state)
{
	struct symbols symbols = { 0 };
	struct image image = { 0 };
	uint8_t code[0x100] = { 0 };

	add(&symbols, 0x100, 0, "before");
	add(&symbols, 0x1080, 0, "within");
	add(&symbols, 0x3000, 0, "after");
	assert_int_equal(image_add(&image, 0x1000, code, sizeof(code)), 0);
	assert_int_equal(symbols_finish(&symbols, true), 0);
	symbols_clip(&symbols, &image);
	assert_int_equal(symbols.count, 1);
	assert_string_equal(name_at(&symbols, 0x10ff), "within");
	assert_string_equal(name_at(&symbols, 0x1100), "-");
	image_free(&image);
	symbols_free(&symbols);
}

static void the_last_address_can_have_a_symbol(void **state)
{
	struct symbols symbols = { 0 };

	add(&symbols, UINT64_MAX, 0, "a_long_name");
	add(&symbols, UINT64_MAX, 0, "b");
	assert_int_equal(symbols_finish(&symbols, true), 0);
	assert_string_equal(name_at(&symbols, UINT64_MAX), "b");
	symbols_free(&symbols);
}

static void a_reserved_table_grows_past_what_was_reserved(void **state)
{
	enum { RESERVED = 60000, ADDED = 3 * RESERVED };
	struct symbols symbols = { 0 };

	symbols_reserve(&symbols, 10);
	assert_null(symbols.items);
	symbols_reserve(&symbols, SIZE_MAX / 2);
	assert_null(symbols.items);
	symbols_reserve(&symbols, RESERVED);
	assert_int_equal(symbols.room, RESERVED);
	for (uint64_t i = 1; i <= ADDED; i++)
		add(&symbols, 16 * i, 16 * i + 8, "name");
	symbols_reserve(&symbols, 2 * RESERVED);
	assert_int_equal(symbols_finish(&symbols, false), 0);
	assert_int_equal(symbols.count, ADDED);
	assert_string_equal(name_at(&symbols, 16 * ADDED + 7), "name");
	symbols_free(&symbols);
}

static void an_empty_table_has_no_symbols(void **state)
{
	struct symbols symbols = { 0 };

	assert_int_equal(symbols_finish(&symbols, true), 0);
	assert_null(symbols_find(&symbols, 0));
	symbols_free(&symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_without_end_reaches_to_the_next),
		cmocka_unit_test(the_last_before_a_module_ends_a_page_further_on),
		cmocka_unit_test(of_doubles_without_size_the_last_is_kept),
		cmocka_unit_test(of_doubles_with_size_the_better_name_is_kept),
		cmocka_unit_test(any_disorder_is_sorted_and_stable),
		cmocka_unit_test(symbols_outside_the_code_are_dropped_and_ends_cut),
		cmocka_unit_test(the_last_address_can_have_a_symbol),
		cmocka_unit_test(a_reserved_table_grows_past_what_was_reserved),
		cmocka_unit_test(an_empty_table_has_no_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
