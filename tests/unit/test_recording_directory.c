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

#include "host/record/recording_directory.h"
#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	char path[100]; /* of the recording to make */
	struct recording_directory directory;
	struct ptvm_error error;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	(void)snprintf(bench.path, sizeof(bench.path), "%s/rec", bench.tree.path);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	recording_directory_close(&bench->directory);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static int make(struct bench *bench)
{
	return recording_directory_make(bench->path, &bench->directory, &bench->error);
}

static bool is_there(const struct bench *bench, const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", bench->tree.path, name);
	return !access(path, F_OK);
}

/* With something recorded in it. */
static void make_kept(struct bench *bench)
{
	assert_int_equal(make(bench), 0);
	assert_int_equal(recording_directory_keep(&bench->directory, NULL), 0);
	assert_int_equal(recording_directory_keep(&bench->directory, NULL), 0); /* no more */
}

/* A file that is in the way stays as it was, and nothing is made. */
static void assert_in_the_way(struct bench *bench, const char *name)
{
	char expected[300];

	assert_int_equal(make(bench), -PTVM_SYSTEM);
	(void)snprintf(expected, sizeof(expected),
		       "%s/%s is in the way, and holds what is no recording: move it, or give "
		       "another name with -o",
		       bench->tree.path, name);
	assert_string_equal(bench->error.message, expected);
	assert_string_equal(bench->directory.path, "");
}

static void it_is_made_for_its_owner(void **state)
{
	struct bench *bench = *state;
	struct stat about;
	char path[PATH_MAX];

	assert_int_equal(make(bench), 0);
	assert_int_equal(stat(bench->path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0700);
	(void)recording_directory_file(&bench->directory, "data", path);
	assert_int_equal(strncmp(path, bench->path, strlen(bench->path)), 0);
	assert_string_equal(path + strlen(bench->path), "/data");
}

static void slashes_at_the_end_do_not_count(void **state)
{
	struct bench *bench = *state;
	char path[120];

	(void)snprintf(path, sizeof(path), "%s///", bench->path);
	assert_int_equal(recording_directory_make(path, &bench->directory, NULL), 0);
	assert_string_equal(bench->directory.path, bench->path);
}

static void what_cannot_be_a_path_is_refused(void **state)
{
	static char longest[PATH_MAX];
	struct bench *bench = *state;

	memset(longest, 'x', sizeof(longest) - 1);
	assert_int_equal(recording_directory_make("", &bench->directory, NULL), -PTVM_BAD_USAGE);
	assert_int_equal(recording_directory_make("//", &bench->directory, NULL), -PTVM_BAD_USAGE);
	assert_int_equal(recording_directory_make(longest, &bench->directory, NULL),
			 -PTVM_BAD_USAGE);
	assert_int_equal(recording_directory_make("/nowhere/rec", &bench->directory, NULL),
			 -PTVM_SYSTEM);
}

static void one_that_is_there_becomes_old(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1", "rec.old/data");
	fake_tree_file(&bench->tree, "1", "rec.old/data.ptvm.json");
	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir/kcore");
	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir__12/kallsyms");
	fake_tree_file(&bench->tree, "2", "rec/data");
	fake_tree_file(&bench->tree, "2", "rec/notes");
	make_kept(bench);
	assert_true(is_there(bench, "rec.old/notes"));
	assert_false(is_there(bench, "rec.old/kcore_dir"));
	assert_false(is_there(bench, "rec/data"));
}

static void an_old_one_that_was_killed_while_it_copied_a_kernel_goes(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1", "rec.old/data");
	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir.a1B2c3/kallsyms");
	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir__12.a1B2c3/kcore");
	fake_tree_file(&bench->tree, "2", "rec/data");
	make_kept(bench);
	assert_false(is_there(bench, "rec.old/kcore_dir.a1B2c3"));
	assert_false(is_there(bench, "rec.old/kcore_dir__12.a1B2c3"));
}

static void an_old_one_with_something_else_in_it_stays_whole(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1", "rec.old/data");
	fake_tree_file(&bench->tree, "1", "rec.old/notes");
	fake_tree_file(&bench->tree, "2", "rec/data");
	assert_in_the_way(bench, "rec.old");
	assert_true(is_there(bench, "rec.old/data"));
	assert_true(is_there(bench, "rec/data"));
}

static void so_does_one_with_something_else_beside_a_kernel(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir/kcore");
	fake_tree_file(&bench->tree, "1", "rec.old/kcore_dir/thesis");
	fake_tree_file(&bench->tree, "2", "rec/data");
	assert_in_the_way(bench, "rec.old");
	assert_true(is_there(bench, "rec.old/kcore_dir/kcore"));
	assert_true(is_there(bench, "rec.old/kcore_dir/thesis"));
}

static void a_directory_that_is_no_recording_stays(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "x", "rec/thesis");
	assert_in_the_way(bench, "rec");
	assert_true(is_there(bench, "rec/thesis"));
	assert_false(is_there(bench, "rec.old"));
}

static void an_empty_directory_is_no_loss(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(mkdir(bench->path, 0700), 0);
	make_kept(bench);
	assert_true(is_there(bench, "rec.old"));
}

static void files_are_recordings_of_perf(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "PERFILE2 1", "rec.old");
	fake_tree_file(&bench->tree, "PERFILE2 2", "rec");
	make_kept(bench);
	recording_directory_remove(&bench->directory);
	fake_tree_file(&bench->tree, "my thesis", "rec.old");
	fake_tree_file(&bench->tree, "PERFILE2 3", "rec");
	assert_in_the_way(bench, "rec.old");
	assert_true(is_there(bench, "rec"));
}

static void links_are_not_followed(void **state)
{
	struct bench *bench = *state;
	char target[120];

	(void)snprintf(target, sizeof(target), "%s/other", bench->tree.path);
	fake_tree_file(&bench->tree, "x", "other/kcore");
	fake_tree_link(&bench->tree, target, "rec.old/kcore_dir");
	fake_tree_link(&bench->tree, target, "rec");
	make_kept(bench);
	assert_true(is_there(bench, "other/kcore"));
	assert_true(is_there(bench, "rec.old/kcore"));
	recording_directory_remove(&bench->directory);
	fake_tree_file(&bench->tree, "x", "rec/data");
	make_kept(bench);
	assert_true(is_there(bench, "other/kcore"));
	assert_true(is_there(bench, "rec.old/data"));
}

static void what_was_not_recorded_is_removed(void **state)
{
	struct bench *bench = *state;

	recording_directory_remove(&bench->directory);
	assert_int_equal(make(bench), 0);
	fake_tree_file(&bench->tree, "x", "rec/data");
	fake_tree_file(&bench->tree, "x", "rec/kcore_dir__3/kcore");
	recording_directory_remove(&bench->directory);
	assert_false(is_there(bench, "rec"));
	assert_string_equal(bench->directory.path, "");
}

static void the_last_two_are_safe_until_something_is_recorded(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1", "rec.old/data");
	fake_tree_file(&bench->tree, "1", "rec.old/data.first");
	fake_tree_file(&bench->tree, "2", "rec/data.second");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(make(bench), 0);
		assert_false(is_there(bench, "rec/data.second"));
		recording_directory_remove(&bench->directory);
		assert_true(is_there(bench, "rec/data.second"));
		assert_true(is_there(bench, "rec.old/data.first"));
	}
	recording_directory_remove(&bench->directory); /* there is none */
	assert_true(is_there(bench, "rec/data.second"));
	make_kept(bench);
	recording_directory_remove(&bench->directory);
	assert_false(is_there(bench, "rec"));
	assert_true(is_there(bench, "rec.old/data.second"));
	assert_false(is_there(bench, "rec.old/data.first"));
}

static void one_in_use_stays(void **state)
{
	struct bench *bench = *state;
	struct recording_directory second = { .path = "" }, old = { .path = "" };
	char path[120];

	make_kept(bench);
	assert_int_equal(recording_directory_make(bench->path, &second, &bench->error),
			 -PTVM_SYSTEM);
	assert_non_null(strstr(bench->error.message, "rec is in use by another ptvm record"));
	recording_directory_close(&bench->directory);
	assert_int_equal(recording_directory_make(bench->path, &second, NULL), 0);
	recording_directory_remove(&second);
	(void)snprintf(path, sizeof(path), "%s.old", bench->path);
	assert_int_equal(recording_directory_make(path, &old, NULL), 0);
	assert_int_equal(recording_directory_make(bench->path, &second, NULL), -PTVM_SYSTEM);
	recording_directory_remove(&old);
	assert_true(is_there(bench, "rec"));
}

/* Somebody made an other .old meanwhile. */
static void what_cannot_become_old_is_told(void **state)
{
	struct bench *bench = *state;
	char aside[sizeof(bench->directory.aside)];

	fake_tree_file(&bench->tree, "1", "rec/data");
	assert_int_equal(make(bench), 0);
	(void)strcpy(aside, bench->directory.aside);
	fake_tree_file(&bench->tree, "x", "rec.old/thesis");
	assert_int_equal(recording_directory_keep(&bench->directory, &bench->error), -PTVM_SYSTEM);
	assert_non_null(strstr(bench->error.message, aside));
	assert_non_null(strstr(bench->error.message, "rec.old is in the way"));
	assert_true(is_there(bench, "rec.old/thesis"));
	assert_int_equal(access(aside, F_OK), 0);
	assert_int_equal(recording_directory_keep(&bench->directory, NULL), 0);
}

static void halves_of_kernels_are_dropped(void **state)
{
	static const char *const dropped[] = { "kcore_dir.a3xYz9", "kcore_dir__4711.QWErty" };
	static const char *const kept[] = {
		"kcore_dir",     "kcore_dir__4711", "kcore_dir.backup",    "kcore_dir.old",
		"kcore_dir.A1b", "other.a3xYz9",    "kcore_dir__x.a3xYz9",
	};
	struct bench *bench = *state;
	char name[100];

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		fake_tree_file(&bench->tree, "x", "rec/%s/kcore", dropped[i]);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		fake_tree_file(&bench->tree, "x", "rec/%s/kcore", kept[i]);
	fake_tree_file(&bench->tree, "x", "rec/kcore_dir.foreiG/kcore");
	fake_tree_file(&bench->tree, "x", "rec/kcore_dir.foreiG/letter");
	fake_tree_file(&bench->tree, "x", "rec/kcore_dir.fiLe00");
	fake_tree_link(&bench->tree, "kcore_dir", "rec/kcore_dir.liNk00");
	recording_directory_drop_halves(bench->path);
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		(void)snprintf(name, sizeof(name), "rec/%s", dropped[i]);
		assert_false(is_there(bench, name));
	}
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		(void)snprintf(name, sizeof(name), "rec/%s/kcore", kept[i]);
		assert_true(is_there(bench, name));
	}
	assert_true(is_there(bench, "rec/kcore_dir.foreiG/kcore"));
	assert_true(is_there(bench, "rec/kcore_dir.fiLe00"));
	assert_true(is_there(bench, "rec/kcore_dir.liNk00"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_made_for_its_owner),
		TEST(slashes_at_the_end_do_not_count),
		TEST(what_cannot_be_a_path_is_refused),
		TEST(one_that_is_there_becomes_old),
		TEST(an_old_one_that_was_killed_while_it_copied_a_kernel_goes),
		TEST(an_old_one_with_something_else_in_it_stays_whole),
		TEST(so_does_one_with_something_else_beside_a_kernel),
		TEST(a_directory_that_is_no_recording_stays),
		TEST(an_empty_directory_is_no_loss),
		TEST(files_are_recordings_of_perf),
		TEST(links_are_not_followed),
		TEST(halves_of_kernels_are_dropped),
		TEST(what_was_not_recorded_is_removed),
		TEST(the_last_two_are_safe_until_something_is_recorded),
		TEST(one_in_use_stays),
		TEST(what_cannot_become_old_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
