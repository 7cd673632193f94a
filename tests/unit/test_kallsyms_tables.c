#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/kallsyms_tables.h"
#include "tests/fake_kallsyms.h"

static const uint64_t base = 0xffffffff96000000;

enum { COUNT = 2500, BEFORE = 4096, AFTER = 4096, IMAGE = COUNT * 16 };

static struct bytes as_bytes(const struct text *image)
{
	return (struct bytes){ (const uint8_t *)image->data, image->size };
}

/* Tables in an image that is as large as the symbols say, other bytes around them. */
static void make(const struct fake_kallsyms *how, struct text *image)
{
	/* tables that are aligned to 4 bytes only may begin so */
	for (unsigned i = 0; i < BEFORE + (how->layout == FAKE_FROM_7_0 ? 4 : 0); i++)
		text_putc(image, (char)(i % 7));
	fake_kallsyms_put(how, image);
	while (image->size < IMAGE + AFTER)
		text_putc(image, (char)(image->size % 5));
}

static void assert_all(const struct kallsyms_tables *tables, const struct fake_kallsyms *how)
{
	struct kallsyms_place place = { 0 };
	struct kallsyms_symbol symbol;

	assert_int_equal(tables->count, how->count);
	for (size_t i = 0; i < how->count; i++) {
		assert_true(kallsyms_tables_next(tables, &place, &symbol));
		assert_int_equal(symbol.address, how->symbols[i].address);
		assert_int_equal(symbol.type, how->symbols[i].type);
		assert_string_equal(symbol.name, how->symbols[i].name);
	}
	assert_false(kallsyms_tables_next(tables, &place, &symbol));
}

static void assert_found(const struct fake_kallsyms *how)
{
	struct text image = { 0 };
	struct kallsyms_tables tables;

	make(how, &image);
	assert_int_equal(kallsyms_tables_find(as_bytes(&image), base, &tables, NULL), 0);
	assert_int_equal(tables.kind, how->kind);
	assert_all(&tables, how);
	text_free(&image);
}

static void each_layout_is_found(void **state)
{
	static const enum fake_layout layouts[] = { FAKE_TO_6_1, FAKE_6_2, FAKE_FROM_6_4 };
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);

	for (unsigned i = 0; i < 3; i++)
		/* also with a last block that is whole, and with one symbol in it */
		for (size_t count = 2303; count <= 2305; count++)
			assert_found(&(struct fake_kallsyms){ layouts[i], KALLSYMS_PER_CPU, base,
							      symbols, count });
	free(symbols);
}

static void offsets_without_absolute_symbols_are_found(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);

	assert_found(&(struct fake_kallsyms){ FAKE_TO_6_1, KALLSYMS_OFFSETS, base, symbols + 2,
					      COUNT - 2 });
	assert_found(&(struct fake_kallsyms){ FAKE_FROM_6_4, KALLSYMS_OFFSETS, base, symbols + 2,
					      COUNT - 2 });
	free(symbols);
}

/* Code is before the tables, and behind them; counts of symbols and of markers are odd and even. */
static void values_relative_to_their_places_are_found(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);

	for (size_t i = COUNT / 2; i < COUNT; i++)
		symbols[i].address += IMAGE / 2;
	for (size_t count = 2045; count <= 2050; count++)
		assert_found(&(struct fake_kallsyms){ FAKE_FROM_7_0, KALLSYMS_PLACES, base,
						      symbols + 2, count });
	free(symbols);
}

static void whole_addresses_are_found(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);

	assert_found(
		&(struct fake_kallsyms){ FAKE_TO_6_1, KALLSYMS_ADDRESSES, base, symbols, COUNT });
	free(symbols);
}

static void names_may_be_long(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);

	memset(symbols[7].name, 'x', 126);
	memset(symbols[8].name, 'y', 128);
	memset(symbols[9].name, 'z', KALLSYMS_NAME_BYTES - 1);
	assert_found(
		&(struct fake_kallsyms){ FAKE_TO_6_1, KALLSYMS_PER_CPU, base, symbols, COUNT });
	free(symbols);
}

static void a_symbol_is_found_by_its_name(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);
	const struct fake_kallsyms how = { FAKE_TO_6_1, KALLSYMS_PER_CPU, base, symbols, COUNT };
	struct text image = { 0 };
	struct kallsyms_tables tables;

	make(&how, &image);
	assert_int_equal(kallsyms_tables_find(as_bytes(&image), base, &tables, NULL), 0);
	assert_int_equal(kallsyms_tables_address(&tables, "fn_1002"), base + 16000);
	assert_int_equal(kallsyms_tables_address(&tables, "fn_"), 0);
	text_free(&image);
	free(symbols);
}

static void assert_none(const struct text *image, uint64_t address)
{
	struct ptvm_error error = { 0 };
	struct kallsyms_tables tables;

	assert_int_equal(kallsyms_tables_find(as_bytes(image), address, &tables, &error),
			 -PTVM_NOT_FOUND);
	assert_non_null(strstr(error.message, "no tables of symbols"));
}

static void tables_that_do_not_fit_together_are_none(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);
	const struct fake_kallsyms how = { FAKE_TO_6_1, KALLSYMS_PER_CPU, base, symbols, COUNT };
	struct text image = { 0 };
	struct kallsyms_tables good;

	make(&how, &image);
	assert_int_equal(kallsyms_tables_find(as_bytes(&image), base, &good, NULL), 0);
	assert_none(&image, base + (1 << 24));
	image.data[good.names]++; /* the first name is longer */
	assert_none(&image, base);
	image.data[good.names]--;
	image.data[good.names - 8]++; /* there is one more */
	assert_none(&image, base);
	image.data[good.names - 8]--;
	image.data[good.token_index + 100]++;
	assert_none(&image, base);
	image.size = good.token_index + 200;
	assert_none(&image, base);
	text_free(&image);
	free(symbols);
}

static void zeroes_are_no_values(void **state)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(base, COUNT);
	const struct fake_kallsyms how = { FAKE_FROM_7_0, KALLSYMS_PLACES, base, symbols + 2,
					   COUNT - 2 };
	struct text image = { 0 };
	struct kallsyms_tables good;

	make(&how, &image);
	assert_int_equal(kallsyms_tables_find(as_bytes(&image), base, &good, NULL), 0);
	memset(image.data + good.values, 0, 4 * (COUNT - 2));
	assert_none(&image, base);
	text_free(&image);
	free(symbols);
}

static void nothing_is_found_in_nothing(void **state)
{
	assert_none(&(struct text){ 0 }, base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layout_is_found),
		cmocka_unit_test(offsets_without_absolute_symbols_are_found),
		cmocka_unit_test(values_relative_to_their_places_are_found),
		cmocka_unit_test(whole_addresses_are_found),
		cmocka_unit_test(names_may_be_long),
		cmocka_unit_test(a_symbol_is_found_by_its_name),
		cmocka_unit_test(tables_that_do_not_fit_together_are_none),
		cmocka_unit_test(zeroes_are_no_values),
		cmocka_unit_test(nothing_is_found_in_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
