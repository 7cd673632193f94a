#include "decode/base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tree_fixture.h"

/* Two files in a directory, and a link to that. */
static int set_up(void **state)
{
	(void)tree_set_up(state);
	fake_tree_file(&tree, "", "real/data");
	fake_tree_file(&tree, "", "real/data.1");
	fake_tree_link(&tree, "real", "link");
	return 0;
}

static void assert_path(const char *path, const char *expected)
{
	char found[PATH_MAX];

	assert_int_equal(directory_path(path, found, NULL), strlen(expected));
	assert_string_equal(found, expected);
}

static void a_path_has_no_slashes_at_its_end(void **state)
{
	assert_path("a", "a");
	assert_path("/a/b//", "/a/b");
}

static void a_path_has_a_name_and_room_for_a_suffix(void **state)
{
	static const char *const wrong[] = { "", "/", "//" };
	struct ptvm_error error = { 0 };
	char longest[PATH_MAX + 1], found[PATH_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(directory_path(wrong[i], found, NULL), -PTVM_BAD_USAGE);
	memset(longest, 'x', sizeof(longest));
	longest[PATH_MAX - DIRECTORY_SUFFIX_BYTES - 1] = '\0';
	assert_path(longest, longest);
	longest[PATH_MAX - DIRECTORY_SUFFIX_BYTES - 1] = 'x';
	longest[PATH_MAX - DIRECTORY_SUFFIX_BYTES] = '\0';
	assert_int_equal(directory_path(longest, found, &error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(error.message, "cannot be a directory to make"));
}

/* Can `name` of the tree be opened? */
static bool opens(const char *name)
{
	DIR *top = directory_open(AT_FDCWD, tree.path), *directory;

	assert_non_null(top);
	errno = 0;
	directory = directory_open(dirfd(top), name);
	if (directory)
		assert_int_equal(closedir(directory), 0);
	else
		assert_int_not_equal(errno, 0);
	assert_int_equal(closedir(top), 0);
	return directory;
}

static void a_directory_is_opened_and_nothing_else(void **state)
{
	assert_true(opens("real"));
	assert_false(opens("real/data"));
	assert_false(opens("none"));
}

static void links_are_not_followed(void **state)
{
	assert_false(opens("link"));
}

static void two_names_are_every_directorys(void **state)
{
	assert_true(directory_is_dots(".") && directory_is_dots(".."));
	assert_false(directory_is_dots("...") || directory_is_dots(".a") || directory_is_dots(""));
}

static bool holds_only(const char *name, const char *pattern)
{
	const char *const patterns[] = { "none", pattern };
	DIR *top = directory_open(AT_FDCWD, tree.path);
	bool r;

	assert_non_null(top);
	r = directory_holds_only(dirfd(top), name, patterns, 2);
	assert_int_equal(closedir(top), 0);
	return r;
}

static void all_that_is_in_it_must_match(void **state)
{
	assert_true(holds_only("real", "data*"));
	assert_false(holds_only("real", "data"));
	assert_false(holds_only("real", "data.?"));
}

static void what_is_no_directory_holds_nothing_else(void **state)
{
	assert_true(holds_only("real/data", "x"));
	assert_true(holds_only("link", "x"));
	assert_true(holds_only("none", "x"));
}

#define IN_TREE(name) cmocka_unit_test_setup_teardown(name, set_up, tree_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_has_no_slashes_at_its_end),
		cmocka_unit_test(a_path_has_a_name_and_room_for_a_suffix),
		IN_TREE(a_directory_is_opened_and_nothing_else),
		IN_TREE(links_are_not_followed),
		IN_TREE(two_names_are_every_directorys),
		IN_TREE(all_that_is_in_it_must_match),
		IN_TREE(what_is_no_directory_holds_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
