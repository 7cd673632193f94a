#include "decode/label_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

enum { ENTRIES = 4, ENTRY_SIZE = 16 };

static const uint64_t text = 0xffffffff81000000, text_end = 0xffffffff81c00000,
		      address = 0xffffffff82001000;

static void put_le(uint8_t *at, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static void put_entry(uint8_t *table, unsigned i, uint64_t site, uint64_t target)
{
	uint64_t at = address + i * ENTRY_SIZE;

	put_le(table + i * ENTRY_SIZE, site - at, 4);
	put_le(table + i * ENTRY_SIZE + 4, target - at - 4, 4);
	put_le(table + i * ENTRY_SIZE + 8, 0x1234, 8);
}

static void entries_are_found_by_their_sites(void **state)
{
	uint8_t bytes[ENTRIES * ENTRY_SIZE];
	struct label_table table;

	put_entry(bytes, 0, text + 0x500, text + 0x600);
	put_entry(bytes, 1, text + 0x100, text + 0x80);
	put_entry(bytes, 2, text_end + 0x100, text_end); /* of code for starting up */
	put_entry(bytes, 3, text, text_end - 1);
	assert_int_equal(label_table_read((struct bytes){ bytes, sizeof(bytes) }, address, text,
					  text_end, &table),
			 0);
	assert_int_equal(table.count, 3);
	assert_int_equal(label_table_find(&table, text + 0x500)->target, text + 0x600);
	assert_int_equal(label_table_find(&table, text + 0x100)->target, text + 0x80);
	assert_int_equal(label_table_find(&table, text)->target, text_end - 1);
	assert_null(label_table_find(&table, text + 0x101));
	assert_null(label_table_find(&table, text_end + 0x100));
	label_table_free(&table);
}

static void what_is_no_table_is_told_from_one(void **state)
{
	uint8_t bytes[ENTRIES * ENTRY_SIZE];
	struct label_table table;

	memset(bytes, 0x11, sizeof(bytes));
	put_entry(bytes, 0, text, text + 0x600);
	assert_int_equal(label_table_read((struct bytes){ bytes, sizeof(bytes) }, address, text,
					  text_end, &table),
			 -PTVM_BAD_INPUT);
	label_table_free(&table);
	assert_int_equal(label_table_read((struct bytes){ bytes, ENTRY_SIZE - 1 }, address, text,
					  text_end, &table),
			 -PTVM_BAD_INPUT);
	assert_null(label_table_find(&table, text));
	label_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_by_their_sites),
		cmocka_unit_test(what_is_no_table_is_told_from_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
