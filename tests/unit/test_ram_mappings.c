#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/ram_mappings.h"
#include "tests/fake_tree.h"

static const uint64_t mib = 1 << 20;

static void read_text(const char *text, struct ram_mappings *ret)
{
	struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_file(&tree, text, "proc/7/maps");
	*ret = (struct ram_mappings){ 0 };
	assert_int_equal(ram_mappings_read(&tree.roots, 7, ret, NULL), 0);
	fake_tree_deinit(&tree);
}

static void assert_extent(const struct ram_mappings *mappings, size_t index, uint64_t from,
			  uint64_t size)
{
	assert_true(index < mappings->extent_count);
	assert_int_equal(mappings->extents[index].from, from);
	assert_int_equal(mappings->extents[index].to, from + size);
}

static void ram_is_written_and_not_executed(void **state)
{
	struct ram_mappings mappings;

	read_text("10000000-20000000 r--p 00000000 fe:00 1 /usr/bin/vmm\n"
		  "20000000-30000000 rwxp 00000000 00:00 0\n"
		  "30000000-40000000 ---p 00000000 00:00 0\n"
		  "7f2133e00000-7f2153e00000 rw-p 00000000 00:00 0\n"
		  "7f2173e00000-7f2183e00000 rw-s 00000000 00:01 9 /memfd:ram (deleted)\n",
		  &mappings);
	assert_int_equal(mappings.count, 2);
	assert_int_equal(mappings.extent_count, 2);
	assert_extent(&mappings, 0, 0x7f2133e00000, 512 * mib);
	assert_extent(&mappings, 1, 0x7f2173e00000, 256 * mib);
	ram_mappings_free(&mappings);
}

static void only_a_private_file_has_what_is_not_touched(void **state)
{
	struct ram_mappings mappings;

	read_text("10000000-20000000 rw-p 00000000 00:00 0\n"
		  "30000000-40000000 rw-p 00000000 fe:00 5 /snapshot\n"
		  "50000000-60000000 rw-s 00000000 fe:00 5 /snapshot\n",
		  &mappings);
	assert_int_equal(mappings.count, 3);
	assert_false(mappings.items[0].is_copy_of_file);
	assert_true(mappings.items[1].is_copy_of_file);
	assert_false(mappings.items[2].is_copy_of_file);
	ram_mappings_free(&mappings);
}

/* Adjacent mappings may be one region or two, so both are offered. */
static void mappings_that_go_on_are_taken_together_too(void **state)
{
	struct ram_mappings mappings;

	read_text("10000000-11000000 rw-p 00000000 00:00 0\n"
		  "11000000-11100000 rw-p 00000000 00:00 0\n"
		  "11101000-11200000 rw-p 00000000 00:00 0\n",
		  &mappings);
	assert_int_equal(mappings.extent_count, 2);
	assert_extent(&mappings, 0, 0x10000000, 17 * mib);
	assert_extent(&mappings, 1, 0x10000000, 16 * mib);
	ram_mappings_free(&mappings);
}

static void of_too_many_the_largest_are_kept(void **state)
{
	struct ram_mappings mappings;
	char text[2 * RAM_EXTENTS * 64] = "";
	uint64_t from = 0x100000000;

	for (unsigned i = 0; i < 2 * RAM_EXTENTS; i++, from += 0x10000000)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "%lx-%lx rw-p 00000000 00:00 0\n", from, from + (16 + i) * mib);
	read_text(text, &mappings);
	assert_int_equal(mappings.count, 2 * RAM_EXTENTS);
	assert_int_equal(mappings.extent_count, RAM_EXTENTS);
	assert_extent(&mappings, 0, from - 0x10000000, (15 + 2 * RAM_EXTENTS) * mib);
	assert_int_equal(mappings.extents[RAM_EXTENTS - 1].to -
				 mappings.extents[RAM_EXTENTS - 1].from,
			 (16 + RAM_EXTENTS) * mib);
	ram_mappings_free(&mappings);
}

static void lines_that_make_no_sense_are_passed_over(void **state)
{
	struct ram_mappings mappings;

	read_text("10000001-20000001 rw-p 00000000 00:00 0\n"
		  "20000000-10000000 rw-p 00000000 00:00 0\nx\n",
		  &mappings);
	assert_int_equal(mappings.count, 0);
	assert_int_equal(mappings.extent_count, 0);
	ram_mappings_free(&mappings);
}

static void no_process_is_told(void **state)
{
	struct ram_mappings mappings = { 0 };
	struct ptvm_error error = { 0 };
	struct fake_tree tree;

	fake_tree_init(&tree);
	assert_int_equal(ram_mappings_read(&tree.roots, 7, &mappings, &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "/7/maps: No such file"));
	fake_tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ram_is_written_and_not_executed),
		cmocka_unit_test(only_a_private_file_has_what_is_not_touched),
		cmocka_unit_test(mappings_that_go_on_are_taken_together_too),
		cmocka_unit_test(of_too_many_the_largest_are_kept),
		cmocka_unit_test(lines_that_make_no_sense_are_passed_over),
		cmocka_unit_test(no_process_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
