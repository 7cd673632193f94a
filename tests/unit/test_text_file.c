#include "decode/base/text_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

enum { MIB = 1 << 20, MOST_MIB = 256 };

struct bench {
	struct fake_tree tree;
	char path[128];
	struct arena arena;
	struct ptvm_error error;
	char *text;
	size_t size;
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	(void)snprintf(bench->path, sizeof(bench->path), "%s/file", bench->tree.path);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	arena_free(&bench->arena);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

static int read_path(struct bench *bench, const char *path)
{
	return text_file_read(path, &bench->arena, &bench->text, &bench->size, &bench->error);
}

static void each_line_ends_with_a_newline(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = { { "one\ntwo\n", "one\ntwo\n" },
		      { "one\ntwo", "one\ntwo\n" },
		      { "\n", "\n" },
		      { "x", "x\n" },
		      { "", "" } };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_tree_file(&bench->tree, cases[i].text, "file");
		assert_int_equal(read_path(bench, bench->path), 0);
		assert_int_equal(bench->size, strlen(cases[i].expected));
		assert_memory_equal(bench->text, cases[i].expected, bench->size);
	}
}

/* stat(2) says 0 of it, and each read(2) gives some pages. */
static void a_file_of_proc_is_read_whole(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_path(bench, "/proc/self/smaps"), 0);
	assert_true(bench->size > 8192);
	assert_int_equal(bench->text[bench->size - 1], '\n');
	assert_non_null(memmem(bench->text, bench->size, "[stack]", 7));
	assert_int_equal(strlen(bench->text), bench->size); /* without a hole */
}

/* What tells no size is read again with more room, when there was too little: the environment of
 * a process that was started with much of it. */
static void a_file_without_a_size_may_be_large(void **state)
{
	enum { VARIABLES = 12, EACH = 100000 };
	struct bench *bench = *state;
	char *variables[VARIABLES + 1] = { NULL }, path[40], byte = 0;
	char *const arguments[] = { (char *)"cat", NULL };
	int input[2], output[2];
	pid_t pid;

	for (unsigned i = 0; i < VARIABLES; i++) {
		variables[i] = malloc(EACH);
		assert_non_null(variables[i]);
		memset(variables[i], 'a' + (int)i, EACH - 1);
		variables[i][1] = '=';
		variables[i][EACH - 1] = 0;
	}
	assert_int_equal(pipe(input) | pipe(output), 0);
	pid = fork();
	if (!pid) {
		(void)dup2(input[0], 0);
		(void)dup2(output[1], 1);
		(void)close(input[1]);
		(void)execve("/bin/cat", arguments, variables);
		_exit(1);
	}
	assert_int_equal(write(input[1], "x", 1), 1);
	assert_int_equal(read(output[0], &byte, 1), 1); /* now it is cat, not this test */
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	assert_int_equal(read_path(bench, path), 0);
	assert_int_equal(bench->size, VARIABLES * EACH + 1);
	assert_int_equal(bench->text[MIB + 5], bench->text[(MIB + 5) / EACH * EACH]);
	for (unsigned i = 0; i < 2; i++) {
		(void)close(input[i]);
		(void)close(output[i]);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (unsigned i = 0; i < VARIABLES; i++)
		free(variables[i]);
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_path(bench, "/dev/zero"), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "not a regular file"));
	bench->error = (struct ptvm_error){ 0 };
	assert_int_equal(read_path(bench, bench->path), -PTVM_SYSTEM);
	assert_non_null(strstr(bench->error.message, bench->path));
}

/* A file with a hole is as large and takes no room. */
static void the_largest_file_is_read(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "file");
	assert_int_equal(truncate(bench->path, (off_t)MOST_MIB * MIB), 0);
	assert_int_equal(read_path(bench, bench->path), 0);
	assert_int_equal(bench->size, (size_t)MOST_MIB * MIB + 1);
	assert_int_equal(bench->text[bench->size - 1], '\n');
}

static void a_larger_file_is_refused_and_not_read(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "file");
	assert_int_equal(truncate(bench->path, (off_t)MOST_MIB * MIB + 1), 0);
	assert_int_equal(read_path(bench, bench->path), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "larger than 256 MiB"));
	assert_int_equal(bench->arena.total, 0);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(each_line_ends_with_a_newline),
		WITH_FIXTURE(a_file_of_proc_is_read_whole),
		WITH_FIXTURE(a_file_without_a_size_may_be_large),
		WITH_FIXTURE(what_is_no_regular_file_is_refused),
		WITH_FIXTURE(the_largest_file_is_read),
		WITH_FIXTURE(a_larger_file_is_refused_and_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
