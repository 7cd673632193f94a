#include "guest/output_directory.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

struct fixture {
	struct fake_tree tree;
	struct output_directory directory;
	struct ptvm_error error;
	char path[PATH_MAX / 2];
};

static struct fixture fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.path, sizeof(fixture.path), "%s/copy", fixture.tree.path);
	return 0;
}

static int tear_down(void **state)
{
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static void make(void)
{
	assert_int_equal(output_directory_make(fixture.path, &fixture.directory, NULL), 0);
}

static int keep(void)
{
	fixture.error = (struct ptvm_error){ 0 };
	return output_directory_keep(&fixture.directory, &fixture.error);
}

/* A file in it that says `text`. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file = fopen(output_directory_file(&fixture.directory, name, path), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void keep_a_kcore(const char *text)
{
	make();
	put("kcore", text);
	assert_int_equal(keep(), 0);
}

/* In the tree; NULL: there is no such file. */
static void assert_file(const char *name, const char *text)
{
	char path[PATH_MAX], read[16] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture.tree.path, name);
	file = fopen(path, "r");
	if (!text) {
		assert_null(file);
		assert_int_equal(errno, ENOENT);
		return;
	}
	assert_non_null(file);
	(void)fgets(read, sizeof(read), file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(read, text);
}

static void assert_entries(unsigned expected)
{
	DIR *directory = opendir(fixture.tree.path);
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	assert_int_equal(closedir(directory), 0);
	assert_int_equal(count, expected + 2); /* . and .. */
}

static void it_is_made_for_its_owner_beside_its_place(void **state)
{
	struct stat status;

	make();
	assert_string_equal(fixture.directory.path, fixture.path);
	assert_int_equal(strncmp(fixture.directory.work, fixture.path, strlen(fixture.path)), 0);
	assert_int_equal(access(fixture.path, F_OK), -1);
	assert_int_equal(stat(fixture.directory.work, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0700);
}

static void two_at_once_are_apart(void **state)
{
	struct output_directory first;

	make();
	first = fixture.directory;
	make();
	assert_string_not_equal(first.work, fixture.directory.work);
}

static void slashes_at_the_end_mean_nothing(void **state)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s//", fixture.path);
	assert_int_equal(output_directory_make(path, &fixture.directory, NULL), 0);
	assert_string_equal(fixture.directory.path, fixture.path);
}

static void assert_refused(const char *path)
{
	struct ptvm_error error = { 0 };
	bool is_made;
	int r;

	fixture.directory.work[0] = 'x';
	r = output_directory_make(path, &fixture.directory, &error);
	is_made = fixture.directory.work[0];
	output_directory_drop(&fixture.directory);
	assert_false(is_made);
	assert_int_equal(r, -PTVM_BAD_USAGE);
	assert_non_null(strstr(error.message, "cannot be a directory to make"));
}

static void some_paths_cannot_be_one(void **state)
{
	char path[PATH_MAX + 1];

	assert_refused("");
	assert_refused("/");
	assert_refused("//");
	memset(path, 'x', sizeof(path));
	path[PATH_MAX] = '\0';
	assert_refused(path);
	path[PATH_MAX - 16] = '\0'; /* no room for what is appended */
	assert_refused(path);
}

static void a_place_that_is_not_there_is_told(void **state)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/none/copy", fixture.tree.path);
	assert_int_equal(output_directory_make(path, &fixture.directory, &fixture.error),
			 -PTVM_SYSTEM);
	assert_int_equal(fixture.error.sys_errno, ENOENT);
	assert_int_equal(strncmp(fixture.error.message, path, strlen(path)), 0);
	assert_string_equal(fixture.directory.work, "");
	output_directory_drop(&fixture.directory);
}

static void a_name_that_does_not_fit_is_none(void **state)
{
	char name[PATH_MAX], path[PATH_MAX];

	make();
	memset(name, 'x', sizeof(name));
	name[PATH_MAX - 1] = '\0';
	assert_string_equal(output_directory_file(&fixture.directory, name, path), "");
	name[PATH_MAX - strlen(fixture.directory.work) - 1] = '\0';
	assert_string_equal(output_directory_file(&fixture.directory, name, path), "");
	name[PATH_MAX - strlen(fixture.directory.work) - 2] = '\0';
	assert_int_equal(strlen(output_directory_file(&fixture.directory, name, path)),
			 PATH_MAX - 1);
}

static void what_is_kept_is_in_its_place(void **state)
{
	keep_a_kcore("new");
	assert_file("copy/kcore", "new");
	assert_string_equal(fixture.directory.work, "");
	output_directory_drop(&fixture.directory);
	assert_file("copy/kcore", "new");
	assert_entries(1);
}

static void what_was_there_gets_old(void **state)
{
	keep_a_kcore("one");
	keep_a_kcore("two");
	assert_file("copy/kcore", "two");
	assert_file("copy.old/kcore", "one");
	keep_a_kcore("three");
	assert_file("copy/kcore", "three");
	assert_file("copy.old/kcore", "two");
	assert_entries(2);
}

/* Nothing is removed that ptvm did not make. */
static void an_old_directory_with_other_files_stays(void **state)
{
	keep_a_kcore("one");
	fake_tree_file(&fixture.tree, "mine", "copy.old/notes");
	fake_tree_file(&fixture.tree, "mine", "copy.old/modules");
	make();
	put("kcore", "two");
	assert_int_equal(keep(), -PTVM_SYSTEM);
	assert_non_null(strstr(fixture.error.message, "copy.old: cannot remove it"));
	assert_file("copy/kcore", "one");
	assert_file("copy.old/notes", "mine");
	assert_file("copy.old/modules", "mine");
	assert_true(fixture.directory.work[0]);
	output_directory_drop(&fixture.directory);
	assert_entries(2);
}

static void an_old_file_stays_too(void **state)
{
	keep_a_kcore("one");
	fake_tree_file(&fixture.tree, "mine", "copy.old");
	make();
	assert_int_equal(keep(), -PTVM_SYSTEM);
	assert_int_equal(fixture.error.sys_errno, ENOTDIR);
	assert_file("copy.old", "mine");
	output_directory_drop(&fixture.directory);
}

/* Whoever may write where we work can make one, to a directory that only root can change. */
static void what_a_link_leads_to_stays(void **state)
{
	keep_a_kcore("one");
	fake_tree_file(&fixture.tree, "mine", "etc/modules");
	fake_tree_link(&fixture.tree, "etc", "copy.old");
	make();
	assert_int_equal(keep(), -PTVM_SYSTEM);
	assert_file("etc/modules", "mine");
	assert_file("copy/kcore", "one");
	output_directory_drop(&fixture.directory);
}

static void a_file_in_the_way_is_renamed_too(void **state)
{
	fake_tree_file(&fixture.tree, "mine", "copy");
	keep_a_kcore("new");
	assert_file("copy/kcore", "new");
	assert_file("copy.old", "mine");
}

static void a_copy_that_vanished_is_told(void **state)
{
	make();
	assert_int_equal(rmdir(fixture.directory.work), 0);
	assert_int_equal(keep(), -PTVM_SYSTEM);
	assert_int_equal(fixture.error.sys_errno, ENOENT);
}

static void only_files_of_a_copy_are_cleared(void **state)
{
	static const char *const names[] = { "kcore", "kallsyms", "modules", "guest.json" };
	char path[PATH_MAX];

	make();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put(names[i], "x");
	put("other", "x");
	output_directory_clear(&fixture.directory);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(
			access(output_directory_file(&fixture.directory, names[i], path), F_OK),
			-1);
	assert_int_equal(access(output_directory_file(&fixture.directory, "other", path), F_OK), 0);
}

static void what_is_dropped_is_gone(void **state)
{
	make();
	put("guest.json", "x");
	output_directory_drop(&fixture.directory);
	assert_entries(0);
	assert_string_equal(fixture.directory.work, "");
	output_directory_drop(&fixture.directory);
	output_directory_drop(&(struct output_directory){ 0 });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_made_for_its_owner_beside_its_place),
		TEST(two_at_once_are_apart),
		TEST(slashes_at_the_end_mean_nothing),
		TEST(some_paths_cannot_be_one),
		TEST(a_place_that_is_not_there_is_told),
		TEST(a_name_that_does_not_fit_is_none),
		TEST(what_is_kept_is_in_its_place),
		TEST(what_was_there_gets_old),
		TEST(an_old_directory_with_other_files_stays),
		TEST(an_old_file_stays_too),
		TEST(what_a_link_leads_to_stays),
		TEST(a_file_in_the_way_is_renamed_too),
		TEST(a_copy_that_vanished_is_told),
		TEST(only_files_of_a_copy_are_cleared),
		TEST(what_is_dropped_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
