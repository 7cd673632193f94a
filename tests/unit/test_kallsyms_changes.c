#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/arena.h"
#include "decode/base/text_file.h"
#include "guest/kallsyms_changes.h"
#include "tests/two_copies.h"

static int write_changes(const struct two_copies *copies, const char *before, const char *after,
			 struct ptvm_error *error)
{
	fake_tree_file(&copies->tree, before, "before/kallsyms");
	fake_tree_file(&copies->tree, after, "after/kallsyms");
	return kallsyms_changes_write(copies->before, copies->after, copies->path, error);
}

static void assert_written(const struct two_copies *copies, const char *expected)
{
	struct arena arena = { 0 };
	size_t size;
	char *text;

	assert_int_equal(text_file_read(copies->path, &arena, &text, &size, NULL), 0);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
	arena_free(&arena);
}

static void symbols_of_new_modules_are_kept(void **state)
{
	const struct two_copies *copies = *state;

	assert_int_equal(write_changes(copies,
				       "1000 T _text\n5000 t stays\t[b]\n4000 t goes\t[a]\n"
				       "6000 t moves\t[c]\n",
				       "1000 T _text\n2000 T more\n4000 t comes\t[d]\n"
				       "5000 t stays\t[b]\n7000 t moves\t[c]",
				       NULL),
			 0);
	assert_written(copies, "4000 t comes\t[d]\n7000 t moves\t[c]\n");
}

static void without_them_there_is_no_file(void **state)
{
	const struct two_copies *copies = *state;

	assert_int_equal(write_changes(copies, "1 T a\n2 t b\t[m]\n", "3 T a\n2 t b\t[m]\n", NULL),
			 0);
	assert_int_not_equal(access(copies->path, F_OK), 0);
	assert_int_equal(write_changes(copies, "1 T a\n2 t b\t[m]\n", "", NULL), 0);
	assert_int_not_equal(access(copies->path, F_OK), 0);
}

static void what_is_no_line_about_a_module_is_left_out(void **state)
{
	const struct two_copies *copies = *state;

	assert_int_equal(write_changes(copies, "",
				       "\t\n\t[a]\n1\t[a]\n1 t\t[a]\n1 t \t[a]\nt b\t[a]\n"
				       "2 t c\n3 t d\te\n4 tt e\t[a]\n5 t f\t[a]\n",
				       NULL),
			 0);
	assert_written(copies, "5 t f\t[a]\n");
}

static void what_is_there_is_not_overwritten(void **state)
{
	const struct two_copies *copies = *state;
	struct ptvm_error error = { 0 };

	fake_tree_file(&copies->tree, "mine", "changes");
	assert_int_equal(write_changes(copies, "", "2 t b\t[m]\n", &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "changes"));
	assert_written(copies, "mine\n");
	assert_int_equal(kallsyms_changes_write("/nowhere", copies->after, copies->path, &error),
			 -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_copies_set_up, two_copies_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(symbols_of_new_modules_are_kept),
		TEST(without_them_there_is_no_file),
		TEST(what_is_no_line_about_a_module_is_left_out),
		TEST(what_is_there_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
