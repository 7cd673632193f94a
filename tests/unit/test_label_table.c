#include "decode/code/label_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/code/image.h"

enum { ENTRIES = 4, ENTRY_SIZE = 16 };

static const uint64_t text = 0xffffffff81000000, text_end = 0xffffffff81c00000,
		      address = 0xffffffff82001000;

static void put_le(uint8_t *at, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* Entry `i`, of a key at `key`, whose distance has flags in its low bits. */
static void put_entry_of(uint8_t *table, unsigned i, uint64_t site, uint64_t target, uint64_t key)
{
	uint64_t at = address + i * ENTRY_SIZE;

	put_le(table + i * ENTRY_SIZE, site - at, 4);
	put_le(table + i * ENTRY_SIZE + 4, target - at - 4, 4);
	put_le(table + i * ENTRY_SIZE + 8, (key - at - 8) | 3, 8);
}

static void put_entry(uint8_t *table, unsigned i, uint64_t site, uint64_t target)
{
	put_entry_of(table, i, site, target, text_end + 16 * (uint64_t)i);
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

static void labels_of_a_key_are_linked(void **state)
{
	uint8_t bytes[ENTRIES * ENTRY_SIZE];
	struct label_table table;

	put_entry_of(bytes, 0, text + 0x30, text, text_end + 8);
	put_entry_of(bytes, 1, text + 0x20, text, text_end);
	put_entry_of(bytes, 2, text + 0x10, text, text_end + 8);
	put_entry_of(bytes, 3, text + 0x40, text, text_end + 8);
	assert_int_equal(label_table_read((struct bytes){ bytes, sizeof(bytes) }, address, text,
					  text_end, &table),
			 0);
	assert_int_equal(table.items[0].key, text_end + 8);
	assert_int_equal(table.items[1].key, text_end);
	assert_int_equal(table.items[0].next, 2);
	assert_int_equal(table.items[2].next, 3);
	assert_int_equal(table.items[3].next, 0);
	assert_int_equal(table.items[1].next, 1);
	label_table_free(&table);
}

/* Nobody goes through a quarter of a million labels for each of them. */
static void too_many_labels_are_of_no_key(void **state)
{
	enum { LABELS = LABEL_KEY_MAX + 1 };
	static uint8_t bytes[LABELS * ENTRY_SIZE];
	struct label_table table;

	for (unsigned i = 0; i < LABELS; i++)
		put_entry_of(bytes, i, text, text, text_end);
	assert_int_equal(label_table_read((struct bytes){ bytes, sizeof(bytes) }, address, text,
					  text_end, &table),
			 0);
	for (unsigned i = 0; i < LABELS; i++)
		assert_int_equal(table.items[i].next, i);
	label_table_free(&table);
	assert_int_equal(label_table_read((struct bytes){ bytes, sizeof(bytes) - ENTRY_SIZE },
					  address, text, text_end, &table),
			 0);
	assert_int_not_equal(table.items[0].next, 0);
	label_table_free(&table);
}

static void what_labels_are_in_the_copy_is_seen(void **state)
{
	uint8_t code[] = { 0xeb, 0x0e, 0x0f, 0x1f, 0x44, 0,    0,    0x66,
			   0x90, 0x90, 0x90, 0xe9, 0x1b, 0x00, 0x00, 0x00 };
	struct label_entry items[] = { { .site = text, .target = text + 0x10 },
				       { .site = text + 2, .target = text },
				       { .site = text + 7, .target = text },
				       { .site = text + 9, .target = text },
				       { .site = text + 11, .target = text + 0x20 },
				       { .site = text + 0x100, .target = text } };
	static const uint8_t sizes[] = { 2, 5, 2, 0, 0, 0 };
	struct label_table table = { .items = items, .count = 6 };
	struct image image = { 0 };

	assert_int_equal(image_add(&image, text, code, sizeof(code)), 0);
	label_table_see(&table, &image);
	for (unsigned i = 0; i < table.count; i++)
		assert_int_equal(items[i].size, sizes[i]);
	assert_true(items[0].is_jump);
	assert_false(items[1].is_jump || items[2].is_jump);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_by_their_sites),
		cmocka_unit_test(what_is_no_table_is_told_from_one),
		cmocka_unit_test(labels_of_a_key_are_linked),
		cmocka_unit_test(too_many_labels_are_of_no_key),
		cmocka_unit_test(what_labels_are_in_the_copy_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
