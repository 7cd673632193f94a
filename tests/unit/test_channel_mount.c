#include "guest/channel_mount.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_tree.h"
#include "tests/open_files.h"

static struct fake_tree tree;
static struct channel *channel;

static int set_up(void **state)
{
	fake_tree_init(&tree);
	fake_tree_file(&tree, "0123456789", "proc/digits");
	channel = NULL;
	assert_int_equal(channel_mount_new(tree.path, &channel, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	channel_free(channel);
	fake_tree_deinit(&tree);
	return 0;
}

static void directories_of_a_mount_are_listed(void **state)
{
	char names[32];
	int size = channel_list(channel, "/proc", names, sizeof(names));

	assert_int_equal(size, sizeof("digits") + sizeof(".") + sizeof(".."));
	assert_non_null(memmem(names, (size_t)size, "digits", sizeof("digits")));
	assert_int_equal(channel_list(channel, "/proc", names, 1), 0);
	assert_int_equal(channel_list(channel, "/none", names, sizeof(names)), -PTVM_NOT_FOUND);
	assert_int_equal(channel_list(channel, "/../", names, sizeof(names)), -PTVM_NOT_FOUND);
	fake_tree_link(&tree, "proc", "link");
	assert_int_equal(channel_list(channel, "/link", names, sizeof(names)), -PTVM_NOT_FOUND);
}

static void links_in_a_mount_lead_nowhere(void **state)
{
	char text[8];

	fake_tree_link(&tree, "digits", "proc/link");
	fake_tree_link(&tree, "/etc", "etc");
	fake_tree_link(&tree, "proc", "here");
	assert_int_equal(channel_read_text(channel, "/proc/link", text, sizeof(text), NULL),
			 -PTVM_SYSTEM);
	assert_int_equal(channel_read_text(channel, "/etc/passwd", text, sizeof(text), NULL),
			 -PTVM_NOT_FOUND);
	assert_int_equal(channel_read_text(channel, "/here/digits", text, sizeof(text), NULL),
			 -PTVM_NOT_FOUND);
	assert_string_equal(text, "");
}

static void only_regular_files_are_read_of_a_mount(void **state)
{
	char path[PATH_MAX], text[8];

	(void)snprintf(path, sizeof(path), "%s/proc/fifo", tree.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(channel_open(channel, "/proc/fifo", NULL), -PTVM_BAD_INPUT);
	assert_int_equal(channel_open(channel, "/proc", NULL), -PTVM_BAD_INPUT);
	assert_int_equal(channel_open(channel, "/proc/none", NULL), -PTVM_NOT_FOUND);
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, sizeof(text), NULL), 7);
}

/* The kernel gives no size for it, and returns a page at a time. */
static void text_of_proc_is_read_whole(void **state)
{
	char whole[100000], text[sizeof(whole)];
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t size = file ? fread(whole, 1, sizeof(whole), file) : 0;

	if (file)
		(void)fclose(file);
	if (!size)
		skip();
	channel_free(channel);
	assert_int_equal(channel_mount_new("/", &channel, NULL), 0);
	assert_int_equal(channel_open(channel, "/proc/kallsyms", NULL), 0);
	assert_int_equal(channel_read(channel, 0, text, sizeof(text), NULL), size);
	assert_memory_equal(text, whole, size);
}

static void a_mount_must_be_there(void **state)
{
	struct channel *none;
	char path[PATH_MAX];

	assert_int_equal(channel_mount_new("/nonexistent", &none, NULL), -PTVM_NOT_FOUND);
	(void)snprintf(path, sizeof(path), "%s/proc/digits", tree.path);
	assert_int_equal(channel_mount_new(path, &none, NULL), -PTVM_NOT_FOUND);
}

static void a_list_has_as_many_names_as_fit(void **state)
{
	char names[64];
	int all = channel_list(channel, "/proc", names, sizeof(names));

	assert_int_equal(channel_list(channel, "/proc", names, (size_t)all), all);
	assert_true(channel_list(channel, "/proc", names, (size_t)all - 1) < all);
	assert_int_equal(channel_list(channel, "/proc/digits", names, sizeof(names)),
			 -PTVM_NOT_FOUND);
}

static void files_are_found_at_any_depth(void **state)
{
	char text[8];

	fake_tree_file(&tree, "top", "top");
	fake_tree_file(&tree, "deep", "a/b/c/d");
	assert_int_equal(channel_read_text(channel, "/top", text, sizeof(text), NULL), 3);
	assert_string_equal(text, "top");
	assert_int_equal(channel_read_text(channel, "///a/b/c/d", text, sizeof(text), NULL), 4);
	assert_string_equal(text, "deep");
	assert_int_equal(channel_open(channel, "/a/b/x/d", NULL), -PTVM_NOT_FOUND);
	assert_int_equal(channel_open(channel, "/top/d", NULL), -PTVM_NOT_FOUND);
	assert_int_equal(channel_open(channel, "/", NULL), -PTVM_NOT_FOUND);
}

static void beyond_its_end_a_file_has_nothing(void **state)
{
	char text[8];

	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_int_equal(channel_read(channel, 8, text, sizeof(text), NULL), 2);
	assert_int_equal(channel_read(channel, 10, text, sizeof(text), NULL), 0);
	assert_int_equal(channel_read(channel, INT64_MAX - 8, text, sizeof(text), NULL), 0);
	assert_int_equal(channel_read(channel, (uint64_t)INT64_MAX + 1, text, sizeof(text), NULL),
			 0);
	assert_int_equal(channel_read(channel, UINT64_MAX - 100, text, sizeof(text), NULL), 0);
}

static void what_is_missing_or_no_file_is_named_by_its_place_here(void **state)
{
	struct ptvm_error error = { 0 };
	char expected[PATH_MAX];

	assert_int_equal(channel_open(channel, "/proc/none", &error), -PTVM_NOT_FOUND);
	(void)snprintf(expected, sizeof(expected), "%s/proc/none: No such file or directory",
		       tree.path);
	assert_string_equal(error.message, expected);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(channel_open(channel, "/proc", &error), -PTVM_BAD_INPUT);
	(void)snprintf(expected, sizeof(expected), "%s/proc: not a regular file", tree.path);
	assert_string_equal(error.message, expected);
	channel_free(channel);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(channel_mount_new("/", &channel, &error), 0);
	assert_int_equal(channel_open(channel, "/proc", &error), -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "/proc: not a regular file");
}

static void a_file_that_we_may_not_read_is_told(void **state)
{
	struct ptvm_error error = { 0 };
	char path[PATH_MAX];

	if (!geteuid())
		skip(); /* root may read it */
	(void)snprintf(path, sizeof(path), "%s/proc/digits", tree.path);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(channel_open(channel, "/proc/digits", &error), -PTVM_SYSTEM);
	assert_ptr_equal(strstr(error.message, path), error.message);
	assert_non_null(strstr(error.message, "/proc/digits: Permission denied"));
}

/* A guest may have hundreds of modules. */
static void nothing_stays_open(void **state)
{
	static const char *const paths[] = { "/proc/digits", "/proc/none", "/none/x/y", "/proc",
					     "/link" };
	const size_t before = open_files();
	char text[8], names[64];

	fake_tree_link(&tree, "proc", "link");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		(void)channel_open(channel, paths[i], NULL);
		(void)channel_read_text(channel, paths[i], text, sizeof(text), NULL);
		(void)channel_list(channel, paths[i], names, sizeof(names));
	}
	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	channel_free(channel);
	channel = NULL;
	assert_int_equal(open_files(), before - 1); /* the tree itself was open, too */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(directories_of_a_mount_are_listed),
		TEST(a_list_has_as_many_names_as_fit),
		TEST(links_in_a_mount_lead_nowhere),
		TEST(only_regular_files_are_read_of_a_mount),
		TEST(files_are_found_at_any_depth),
		TEST(beyond_its_end_a_file_has_nothing),
		TEST(what_is_missing_or_no_file_is_named_by_its_place_here),
		TEST(a_file_that_we_may_not_read_is_told),
		TEST(text_of_proc_is_read_whole),
		TEST(a_mount_must_be_there),
		TEST(nothing_stays_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
