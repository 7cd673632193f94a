#include "decode/base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/one_file.h"

static void a_file_is_opened_for_reading_only(void **state)
{
	const struct one_file *one = *state;
	struct stat status;
	char text[8];
	int fd;

	fake_tree_file(&one->tree, "bytes", "file");
	fd = regular_file_open(one->path, &status, NULL);
	assert_true(fd >= 0);
	assert_int_equal(status.st_size, 5);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_memory_equal(text, "bytes", 5);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)close(fd);
}

static void a_link_is_what_it_leads_to(void **state)
{
	const struct one_file *one = *state;
	struct stat status;
	int fd;

	fake_tree_file(&one->tree, "bytes", "target");
	fake_tree_link(&one->tree, "target", "file");
	fd = regular_file_open(one->path, &status, NULL);
	assert_true(fd >= 0);
	assert_int_equal(status.st_size, 5);
	(void)close(fd);
}

static void what_is_not_there_is_a_systems_error(void **state)
{
	const struct one_file *one = *state;
	struct ptvm_error error = { 0 };
	struct stat status;

	assert_int_equal(regular_file_open(one->path, &status, &error), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
	assert_ptr_equal(strstr(error.message, one->path), error.message);
}

/* A FIFO without a writer would block for ever, were it opened to look at it. */
static void only_regular_files_are_opened(void **state)
{
	const struct one_file *one = *state;
	const char *const paths[] = { one->path, one->tree.path, "/dev/null" };
	struct stat status;

	assert_int_equal(mkfifo(one->path, 0600), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct ptvm_error error = { 0 };

		assert_int_equal(regular_file_open(paths[i], &status, &error), -PTVM_BAD_INPUT);
		assert_non_null(strstr(error.message, paths[i]));
		assert_non_null(strstr(error.message, "not a regular file"));
	}
}

static void a_link_to_what_is_not_regular_does_not_help(void **state)
{
	const struct one_file *one = *state;
	struct stat status;

	fake_tree_link(&one->tree, "/dev/zero", "file");
	assert_int_equal(regular_file_open(one->path, &status, NULL), -PTVM_BAD_INPUT);
}

int main(void)
{
#define WITH_FIXTURE(test)                                                                         \
	cmocka_unit_test_setup_teardown(test, one_file_set_up, one_file_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_file_is_opened_for_reading_only),
		WITH_FIXTURE(a_link_is_what_it_leads_to),
		WITH_FIXTURE(what_is_not_there_is_a_systems_error),
		WITH_FIXTURE(only_regular_files_are_opened),
		WITH_FIXTURE(a_link_to_what_is_not_regular_does_not_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
