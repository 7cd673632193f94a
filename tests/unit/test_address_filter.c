#include "host/machine/address_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	char kallsyms[120];
	char text[200];
	struct ptvm_error error;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree,
		       "ffffffff81000000 T _stext\n"
		       "ffffffff81000100 T schedule\n"
		       "ffffffff81000140 t twice\n"
		       "ffffffff81000180 T __switch_to\n"
		       "ffffffff810001c0 t twice\n"
		       "ffffffff81000200 T _etext\n",
		       "proc/kallsyms");
	(void)snprintf(bench.kallsyms, sizeof(bench.kallsyms), "%s/kallsyms", bench.tree.proc);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	fake_tree_deinit(&bench->tree);
	return 0;
}

static int translate(struct bench *bench, const char *filters)
{
	bench->error = (struct ptvm_error){ 0 };
	return address_filter_translate(filters, bench->kallsyms, bench->text, sizeof(bench->text),
					&bench->error);
}

static void assert_filter(struct bench *bench, const char *filters, const char *expected)
{
	assert_int_equal(translate(bench, filters), 0);
	assert_string_equal(bench->text, expected);
}

static void assert_refused(struct bench *bench, const char *filters, int code, const char *expected)
{
	assert_int_equal(translate(bench, filters), -code);
	assert_string_equal(bench->error.message, expected);
}

static void numbers_need_no_symbols(void **state)
{
	struct bench *bench = *state;

	(void)strcpy(bench->kallsyms, "/nowhere");
	assert_filter(bench, "filter 0x1000/0x20", "filter 0x1000/0x20");
	assert_filter(bench, " tracestop\t4096 / 32 ", "tracestop 0x1000/0x20");
	assert_int_equal(translate(bench, "filter schedule"), -PTVM_SYSTEM);
}

static void a_symbol_is_meant_whole(void **state)
{
	struct bench *bench = *state;

	assert_filter(bench, "filter schedule", "filter 0xffffffff81000100/0x40");
	assert_filter(bench, "filter schedule/8", "filter 0xffffffff81000100/0x8");
	assert_filter(bench, "filter schedule / __switch_to", "filter 0xffffffff81000100/0xc0");
	assert_filter(bench, "filter 0xffffffff81000000/schedule",
		      "filter 0xffffffff81000000/0x140");
}

static void several_are_separated_by_commas(void **state)
{
	struct bench *bench = *state;

	assert_filter(bench, "filter schedule, tracestop 1/2",
		      "filter 0xffffffff81000100/0x40,tracestop 0x1/0x2");
	assert_refused(bench, "filter schedule,", PTVM_BAD_USAGE,
		       "--filter takes 'filter START[/SIZE|/END]' or 'tracestop …', not ''");
}

static void what_is_no_filter_is_told(void **state)
{
	static const char *const wrong[] = {
		"",           "filter",       "filterschedule",
		"start 1/2",  "filter 1",     "filter 1/",
		"filter 1/x", "filter 1/2 3", "filter 0xg/1",
		"filter /1",  "filter 1/0",   "filter 99999999999999999999/1"
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const int r = translate(bench, wrong[i]);

		assert_true(r == -PTVM_BAD_USAGE || r == -PTVM_NOT_FOUND);
		assert_int_equal(strncmp(bench->error.message, "--filter", 8), 0);
	}
}

static void symbols_must_be_there_and_be_one(void **state)
{
	struct bench *bench = *state;

	assert_refused(bench, "filter nothing", PTVM_NOT_FOUND,
		       "--filter: the kernel shows no symbol 'nothing'");
	assert_refused(bench, "filter sched", PTVM_NOT_FOUND,
		       "--filter: the kernel shows no symbol 'sched'");
	assert_refused(bench, "filter twice", PTVM_BAD_USAGE,
		       "--filter: several symbols are called 'twice': give an address");
}

static void a_range_must_not_end_before_it_begins(void **state)
{
	struct bench *bench = *state;

	assert_refused(bench, "filter __switch_to/schedule", PTVM_BAD_USAGE,
		       "--filter: a range ends before it begins");
	assert_refused(bench, "filter 0xffffffffffffffff/2", PTVM_BAD_USAGE,
		       "--filter: a range ends before it begins");
}

static void symbols_without_addresses_are_not_there(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree,
		       "0000000000000000 T _stext\n0000000000000000 T schedule\n"
		       "0000000000000000 T _etext\n",
		       "proc/kallsyms");
	assert_true(translate(bench, "filter schedule") < 0);
	fake_tree_file(&bench->tree, "\xff\xfe\nffffffff81000000\nffffffff81000000 T \n",
		       "proc/kallsyms");
	assert_true(translate(bench, "filter schedule") < 0);
	fake_tree_file(&bench->tree, "", "proc/kallsyms");
	assert_true(translate(bench, "filter schedule") < 0);
}

static void more_than_fits_is_refused(void **state)
{
	char filters[1000] = "filter 1/2";
	struct bench *bench = *state;

	while (strlen(filters) < 300)
		(void)strcat(filters, ",filter 1/2");
	assert_refused(bench, filters, PTVM_BAD_USAGE, "--filter: too many");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_need_no_symbols),
		TEST(a_symbol_is_meant_whole),
		TEST(several_are_separated_by_commas),
		TEST(what_is_no_filter_is_told),
		TEST(symbols_must_be_there_and_be_one),
		TEST(a_range_must_not_end_before_it_begins),
		TEST(symbols_without_addresses_are_not_there),
		TEST(more_than_fits_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
