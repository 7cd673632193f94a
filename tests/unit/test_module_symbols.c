#include "guest/module_symbols.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/text.h"
#include "guest/kallsyms_tables.h"
#include "guest/module_list.h"
#include "tests/fake_memory.h"

static const uint64_t symbols_at = 0xffffffffc0000000, names_at = 0xffffffffc0010000,
		      types_at = 0xffffffffc0020000;

enum { PAGE = FAKE_MEMORY_PAGE, MOST = 8 };

static struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
	struct text text;
	struct listed_module module;
	Elf64_Sym symbols[MOST];
	char *names, *types; /* in memory */
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_memory_init(&fixture.memory, 32 * PAGE, false);
	page_walk_init(&fixture.walk, &fixture.memory.reader, fixture.memory.root);
	fixture.names = (char *)fake_memory_put(&fixture.memory, names_at, "", 1, 0);
	fixture.types = (char *)fake_memory_put(&fixture.memory, types_at, "", 1, 0);
	fixture.module = (struct listed_module){
		.name = "virtio", .symbols = symbols_at, .names = names_at, .types = types_at
	};
	return 0;
}

static int tear_down(void **state)
{
	text_free(&fixture.text);
	fake_memory_deinit(&fixture.memory);
	return 0;
}

static void add(uint32_t name, uint64_t value, char type)
{
	fixture.types[fixture.module.symbol_count] = type;
	fixture.symbols[fixture.module.symbol_count++] =
		(Elf64_Sym){ .st_name = name, .st_value = value };
}

static void assert_prints(const char *expected)
{
	(void)fake_memory_put(&fixture.memory, symbols_at, fixture.symbols, sizeof(fixture.symbols),
			      0);
	assert_int_equal(
		module_symbols_print(&fixture.walk, &fixture.module, SIZE_MAX, &fixture.text), 0);
	text_putc(&fixture.text, '\0');
	assert_string_equal(fixture.text.data, expected);
}

static void symbols_are_printed_as_kallsyms_has_them(void **state)
{
	memcpy(fixture.names, "\0start\0stop", 12);
	add(0, 0, '?');
	add(7, 0xffffffffc0533030, 't');
	add(1, 0x10, 'T');
	add(3, UINT64_MAX, 'b'); /* names may share their ends */
	assert_prints("ffffffffc0533030 t stop\t[virtio]\n"
		      "0000000000000010 t start\t[virtio]\n"
		      "ffffffffffffffff b art\t[virtio]\n");
}

static void what_has_no_name_or_no_type_is_left_out(void **state)
{
	memcpy(fixture.names, "x\0one\0two", 10);
	add(0, 1, 't'); /* name 0 is no name, whatever is there */
	add(5, 2, 't');
	add(2, 3, '\0');
	add(2, 4, '?');
	add(2, 5, '\xff');
	add(6, 6, 'd');
	assert_prints("0000000000000006 d two\t[virtio]\n");
}

static void names_that_are_far_off_are_not_looked_for(void **state)
{
	memcpy(fixture.names, "\0one", 5);
	add(MODULE_SYMBOLS_NAME_BYTES, 1, 't');
	add(UINT32_MAX, 2, 't');
	add(1, 3, 't');
	add(MODULE_SYMBOLS_NAME_BYTES - 1, 4, 't'); /* not mapped, so it has no name */
	assert_prints("0000000000000003 t one\t[virtio]\n");
}

static void a_name_without_end_is_cut(void **state)
{
	char line[PAGE];

	memset(fixture.names, 'x', PAGE);
	add(1, 1, 't');
	(void)snprintf(line, sizeof(line), "%016x t %.*s\t[virtio]\n", 1, KALLSYMS_NAME_BYTES - 1,
		       fixture.names);
	assert_prints(line);
}

static void the_longest_names_fit(void **state)
{
	char line[PAGE];

	memset(fixture.module.name, 'm', MODULE_NAME_BYTES - 1);
	memset(fixture.names + 1, 'x', KALLSYMS_NAME_BYTES - 1);
	add(1, UINT64_MAX, 't');
	(void)snprintf(line, sizeof(line), "ffffffffffffffff t %s\t[%s]\n", fixture.names + 1,
		       fixture.module.name);
	assert_prints(line);
}

static void more_symbols_than_can_be_are_none(void **state)
{
	memcpy(fixture.names, "\0one", 5);
	add(1, 1, 't');
	fixture.module.symbol_count = MODULE_SYMBOLS + 1;
	assert_prints("");
	text_free(&fixture.text);
	fixture.module.symbol_count = MODULE_SYMBOLS;
	assert_prints("0000000000000001 t one\t[virtio]\n");
}

/* Each may have the same long name: a megabyte of memory would make half a gigabyte of text. */
static void the_text_ends_where_it_is_long_enough(void **state)
{
	memcpy(fixture.names, "\0one", 5);
	add(1, 1, 't');
	add(1, 2, 't');
	add(1, 3, 't');
	(void)fake_memory_put(&fixture.memory, symbols_at, fixture.symbols, sizeof(fixture.symbols),
			      0);
	assert_int_equal(module_symbols_print(&fixture.walk, &fixture.module, 40, &fixture.text),
			 0);
	text_putc(&fixture.text, '\0');
	assert_string_equal(fixture.text.data, "0000000000000001 t one\t[virtio]\n"
					       "0000000000000002 t one\t[virtio]\n");
}

static void a_module_without_symbols_has_none(void **state)
{
	assert_prints("");
}

static void memory_that_is_gone_has_no_symbols(void **state)
{
	memcpy(fixture.names, "\0one", 5);
	add(1, 1, 't');
	fixture.memory.fails = true;
	assert_prints("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(symbols_are_printed_as_kallsyms_has_them),
		TEST(what_has_no_name_or_no_type_is_left_out),
		TEST(names_that_are_far_off_are_not_looked_for),
		TEST(a_name_without_end_is_cut),
		TEST(the_longest_names_fit),
		TEST(more_symbols_than_can_be_are_none),
		TEST(the_text_ends_where_it_is_long_enough),
		TEST(a_module_without_symbols_has_none),
		TEST(memory_that_is_gone_has_no_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
