#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/kallsyms.h"
#include "decode/code/modules.h"
#include "guest/code_ranges.h"

static int find(const char *kallsyms, const char *modules_text, struct code_ranges *ret)
{
	struct symbols symbols = { 0 };
	struct modules modules = { 0 };
	char text[1024];
	int r;

	(void)snprintf(text, sizeof(text), "%s", kallsyms);
	assert_int_equal(kallsyms_parse(text, strlen(text), &symbols), 0);
	assert_int_equal(symbols_finish(&symbols, true), 0);
	assert_int_equal(modules_parse(modules_text, strlen(modules_text), &modules), 0);
	r = code_ranges_find(&symbols, &modules, ret, NULL);
	symbols_free(&symbols);
	modules_free(&modules);
	return r;
}

static void assert_range(const struct code_ranges *ranges, size_t i, uint64_t start, uint64_t end)
{
	assert_true(i < ranges->count);
	assert_int_equal(ranges->items[i].start, start);
	assert_int_equal(ranges->items[i].end, end);
}

#define KERNEL "ffffffff81000000 T _stext\nffffffff81c00001 T _etext\n"

static void kernel_text_is_whole_pages(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find(KERNEL, "", &ranges), 0);
	assert_int_equal(ranges.count, 1);
	assert_int_equal(ranges.kernel_start, 0xffffffff81000000);
	assert_range(&ranges, 0, 0xffffffff81000000, 0xffffffff81c01000);
	code_ranges_free(&ranges);
}

static void the_table_of_jump_labels_comes_with_the_text(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find(KERNEL "ffffffff82001010 D __start___jump_table\n"
				     "ffffffff82003000 D __stop___jump_table\n",
			      "", &ranges),
			 0);
	assert_int_equal(ranges.count, 2);
	assert_range(&ranges, 1, 0xffffffff82001000, 0xffffffff82004000);
	code_ranges_free(&ranges);
}

static void a_table_without_an_end_is_left_out(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find(KERNEL "ffffffff82001010 D __start___jump_table\n", "", &ranges), 0);
	assert_int_equal(ranges.count, 1);
	code_ranges_free(&ranges);
}

static void modules_that_are_near_make_one_range(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find(KERNEL,
			      "kvm 8192 0 - Live 0xffffffffc0010000\n"
			      "ext4 4097 0 - Live 0xffffffffc0000000\n"
			      "far 4096 0 - Live 0xffffffffc0100000\n",
			      &ranges),
			 0);
	assert_int_equal(ranges.count, 3);
	assert_range(&ranges, 1, 0xffffffffc0000000, 0xffffffffc0012000);
	assert_range(&ranges, 2, 0xffffffffc0100000, 0xffffffffc0101000);
	code_ranges_free(&ranges);
}

static void code_that_is_no_module_is_known_by_its_symbols(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find(KERNEL "ffffffffc0200810 t bpf_prog_1\t[bpf]\n"
				     "0000000000001000 d percpu\t[kvm]\n",
			      "kvm 4096 0 - Live 0xffffffffc0300000\n", &ranges),
			 0);
	assert_int_equal(ranges.count, 3);
	assert_range(&ranges, 1, 0xffffffffc0200000, 0xffffffffc0201000);
	assert_range(&ranges, 2, 0xffffffffc0300000, 0xffffffffc0301000);
	code_ranges_free(&ranges);
}

static void the_end_of_the_address_space_is_no_trap(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(
		find("ffffffff81000000 T _stext\nffffffffffffffff T _etext\n", "", &ranges), 0);
	assert_range(&ranges, 0, 0xffffffff81000000, 0xfffffffffffff000);
	code_ranges_free(&ranges);
	assert_int_equal(
		find("fffffffffffff000 T _stext\nffffffffffffffff T _etext\n", "", &ranges), 0);
	assert_int_equal(ranges.count, 0);
	code_ranges_join(&ranges);
	assert_int_equal(ranges.count, 0);
	code_ranges_free(&ranges);
}

static void a_kernel_without_text_is_refused(void **state)
{
	struct code_ranges ranges;

	assert_int_equal(find("ffffffff81000000 T _stext\n", "", &ranges), -PTVM_BAD_INPUT);
	code_ranges_free(&ranges);
	assert_int_equal(
		find("ffffffff81000000 T _stext\nffffffff80000000 T _etext\n", "", &ranges),
		-PTVM_BAD_INPUT);
	code_ranges_free(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_text_is_whole_pages),
		cmocka_unit_test(modules_that_are_near_make_one_range),
		cmocka_unit_test(the_table_of_jump_labels_comes_with_the_text),
		cmocka_unit_test(a_table_without_an_end_is_left_out),
		cmocka_unit_test(code_that_is_no_module_is_known_by_its_symbols),
		cmocka_unit_test(the_end_of_the_address_space_is_no_trap),
		cmocka_unit_test(a_kernel_without_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
