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

#include "guest/output_owner.h"
#include "tests/fake_tree.h"

enum { USER = 12345, GROUP = 12346 };

struct bench {
	struct fake_tree tree;
	char path[PATH_MAX];
};

static int set_up(void **state)
{
	static struct bench bench;

	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree, "", "recording/data");
	fake_tree_file(&bench.tree, "", "recording/kcore_dir/kcore");
	fake_tree_file(&bench.tree, "", "recording/kcore_dir/too/deep");
	fake_tree_file(&bench.tree, "", "elsewhere");
	fake_tree_link(&bench.tree, "../elsewhere", "recording/link");
	(void)snprintf(bench.path, sizeof(bench.path), "%s/recording", bench.tree.path);
	(void)setenv("SUDO_UID", "12345", 1);
	(void)setenv("SUDO_GID", "12346", 1);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	(void)unsetenv("SUDO_UID");
	(void)unsetenv("SUDO_GID");
	fake_tree_deinit(&bench->tree);
	return 0;
}

static struct stat look(const struct bench *bench, const char *name)
{
	char path[PATH_MAX];
	struct stat status;

	(void)snprintf(path, sizeof(path), "%s/%s", bench->tree.path, name);
	assert_int_equal(lstat(path, &status), 0);
	return status;
}

static void assert_given(const struct bench *bench, const char *name)
{
	const struct stat status = look(bench, name);

	assert_int_equal(status.st_uid, USER);
	assert_int_equal(status.st_gid, GROUP);
}

static void assert_kept(const struct bench *bench, const char *name)
{
	assert_int_equal(look(bench, name).st_uid, geteuid());
}

static void needs_root(void)
{
	if (geteuid())
		skip();
}

static void a_recording_goes_to_who_called_sudo(void **state)
{
	struct bench *bench = *state;

	needs_root();
	assert_int_equal(output_owner_give(bench->path, NULL), 0);
	assert_given(bench, "recording");
	assert_given(bench, "recording/data");
	assert_given(bench, "recording/kcore_dir");
	assert_given(bench, "recording/kcore_dir/kcore");
	assert_kept(bench, "recording/kcore_dir/too");
	assert_kept(bench, "recording/kcore_dir/too/deep");
}

static void what_is_linked_is_left_alone(void **state)
{
	struct bench *bench = *state;
	char from[PATH_MAX], to[PATH_MAX];

	needs_root();
	(void)snprintf(from, sizeof(from), "%s/elsewhere", bench->tree.path);
	(void)snprintf(to, sizeof(to), "%s/recording/other name", bench->tree.path);
	assert_int_equal(link(from, to), 0);
	assert_int_equal(output_owner_give(bench->path, NULL), 0);
	assert_given(bench, "recording");
	assert_kept(bench, "recording/link");
	assert_kept(bench, "elsewhere");
	assert_int_equal(unlink(to), 0);
	(void)snprintf(to, sizeof(to), "%s/link to it", bench->tree.path);
	assert_int_equal(symlink(from, to), 0);
	assert_int_equal(output_owner_give(to, NULL), -PTVM_SYSTEM);
}

static void without_sudo_nothing_changes(void **state)
{
	static const char *const nobody[] = {
		"", "0", "-1", "12x", "4294967295", "99999999999999"
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		(void)setenv("SUDO_UID", nobody[i], 1);
		assert_int_equal(output_owner_give(bench->path, NULL), 0);
		assert_kept(bench, "recording");
	}
	(void)setenv("SUDO_UID", "12345", 1);
	(void)unsetenv("SUDO_GID");
	assert_int_equal(output_owner_give(bench->path, NULL), 0);
	assert_kept(bench, "recording/data");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_recording_goes_to_who_called_sudo),
		TEST(what_is_linked_is_left_alone),
		TEST(without_sudo_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
