#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/arena.h"
#include "decode/text_file.h"
#include "guest/kallsyms_changes.h"
#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	char before[128], after[128], path[128];
};

static int set_up(void **state)
{
	static struct bench bench;

	fake_tree_init(&bench.tree);
	(void)snprintf(bench.before, sizeof(bench.before), "%s/before", bench.tree.path);
	(void)snprintf(bench.after, sizeof(bench.after), "%s/after", bench.tree.path);
	(void)snprintf(bench.path, sizeof(bench.path), "%s/changes", bench.tree.path);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	fake_tree_deinit(&bench->tree);
	return 0;
}

static int write_changes(const struct bench *bench, const char *before, const char *after,
			 struct ptvm_error *error)
{
	fake_tree_file(&bench->tree, before, "before/kallsyms");
	fake_tree_file(&bench->tree, after, "after/kallsyms");
	return kallsyms_changes_write(bench->before, bench->after, bench->path, error);
}

static void assert_written(const struct bench *bench, const char *expected)
{
	struct arena arena = { 0 };
	size_t size;
	char *text;

	assert_int_equal(text_file_read(bench->path, &arena, &text, &size, NULL), 0);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
	arena_free(&arena);
}

static void symbols_of_new_modules_are_kept(void **state)
{
	const struct bench *bench = *state;

	assert_int_equal(write_changes(bench,
				       "1000 T _text\n5000 t stays\t[b]\n4000 t goes\t[a]\n"
				       "6000 t moves\t[c]\n",
				       "1000 T _text\n2000 T more\n4000 t comes\t[d]\n"
				       "5000 t stays\t[b]\n7000 t moves\t[c]",
				       NULL),
			 0);
	assert_written(bench, "4000 t comes\t[d]\n7000 t moves\t[c]\n");
}

static void without_them_there_is_no_file(void **state)
{
	const struct bench *bench = *state;

	assert_int_equal(write_changes(bench, "1 T a\n2 t b\t[m]\n", "3 T a\n2 t b\t[m]\n", NULL),
			 0);
	assert_int_not_equal(access(bench->path, F_OK), 0);
	assert_int_equal(write_changes(bench, "1 T a\n2 t b\t[m]\n", "", NULL), 0);
	assert_int_not_equal(access(bench->path, F_OK), 0);
}

static void what_is_there_is_not_overwritten(void **state)
{
	const struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	fake_tree_file(&bench->tree, "mine", "changes");
	assert_int_equal(write_changes(bench, "", "2 t b\t[m]\n", &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "changes"));
	assert_written(bench, "mine\n");
	assert_int_equal(kallsyms_changes_write("/nowhere", bench->after, bench->path, &error),
			 -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(symbols_of_new_modules_are_kept),
		TEST(without_them_there_is_no_file),
		TEST(what_is_there_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
