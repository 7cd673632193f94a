#include "decode/perf/perf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/write_all.h"
#include "tests/fake_tree.h"

enum { SIZE = 24 };

/* What a recording begins with. */
static const char start[SIZE] = "PERFILE2\x68\0\0\0\0\0\0\0and more";

struct bench {
	struct fake_tree tree;
	struct perf_data data;
	struct ptvm_error error;
	char path[128];
	int here, input; /* where the test began, and its standard input */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	bench->here = open(".", O_RDONLY | O_DIRECTORY);
	bench->input = dup(STDIN_FILENO);
	assert_true(bench->here >= 0 && bench->input >= 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_file_close(&bench->data);
	assert_int_equal(fchdir(bench->here), 0);
	assert_int_equal(dup2(bench->input, STDIN_FILENO), STDIN_FILENO);
	(void)close(bench->here);
	(void)close(bench->input);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

/* Opens what is of that name in the tree. */
static int open_name(struct bench *bench, const char *name)
{
	(void)snprintf(bench->path, sizeof(bench->path), "%s/%s", bench->tree.path, name);
	perf_file_close(&bench->data);
	bench->data = (struct perf_data){ 0 };
	bench->error = (struct ptvm_error){ 0 };
	return perf_file_open(bench->path, &bench->data, &bench->error);
}

static void add_file(const struct bench *bench, const char *name)
{
	fake_tree_bytes(&bench->tree, start, sizeof(start), name);
}

static void assert_bytes(const struct perf_data *data)
{
	assert_int_equal(data->file.size, sizeof(start));
	assert_memory_equal(data->file.data, start, sizeof(start));
}

static void a_file_is_mapped_whole(void **state)
{
	struct bench *bench = *state;

	add_file(bench, "some.data");
	assert_int_equal(open_name(bench, "some.data"), 0);
	assert_bytes(&bench->data);
	assert_string_equal(bench->data.path, bench->path);
	assert_string_equal(bench->data.file_path, bench->path);
	assert_null(bench->data.directory);
	assert_ptr_equal(bench->data.mapping.data, bench->data.file.data);
	assert_int_equal(bench->data.parts.count, 0);
}

static void of_a_directory_it_is_the_data(void **state)
{
	struct bench *bench = *state;
	char directory[160], data[160];

	add_file(bench, "run/data");
	(void)snprintf(directory, sizeof(directory), "%s/run", bench->tree.path);
	(void)snprintf(data, sizeof(data), "%s/run/data", bench->tree.path);
	assert_int_equal(open_name(bench, "run///"), 0);
	assert_bytes(&bench->data);
	assert_string_equal(bench->data.path, bench->path);
	assert_string_equal(bench->data.directory, directory);
	assert_string_equal(bench->data.file_path, data);
}

static void what_cannot_be_opened_is_told(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(open_name(bench, "nothing"), -PTVM_SYSTEM);
	assert_int_equal(bench->error.sys_errno, ENOENT);
	assert_non_null(strstr(bench->error.message, bench->path));
}

static void a_directory_without_data_is_no_recording(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "run/other");
	assert_int_equal(open_name(bench, "run"), -PTVM_BAD_INPUT);
	assert_non_null(
		strstr(bench->error.message, "/run: not a recording: no file 'data' in it"));
	add_file(bench, "run/perf.data");
	assert_int_equal(open_name(bench, "run/"), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "/run/: not a recording, but "));
	assert_non_null(strstr(bench->error.message, "/run/perf.data may be one"));
}

static void an_empty_file_is_no_recording(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "empty");
	assert_int_equal(open_name(bench, "empty"), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "empty file"));
}

/* A FIFO in it would block for ever. */
static void the_data_of_a_directory_are_a_regular_file(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "run/other");
	(void)snprintf(bench->path, sizeof(bench->path), "%s/run/data", bench->tree.path);
	assert_int_equal(mkfifo(bench->path, 0600), 0);
	assert_int_equal(open_name(bench, "run"), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "not a regular file"));
}

/* A pipe that has these bytes and ends; returns a descriptor to read it. */
static int make_pipe(const void *bytes, size_t size)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], bytes, size), size);
	(void)close(ends[1]);
	return ends[0];
}

static void a_pipe_is_kept_in_a_file_of_no_name(void **state)
{
	struct bench *bench = *state;
	int from = make_pipe(start, sizeof(start));

	(void)snprintf(bench->path, sizeof(bench->path), "/dev/fd/%d", from);
	assert_int_equal(perf_file_open(bench->path, &bench->data, &bench->error), 0);
	(void)close(from);
	assert_bytes(&bench->data);
	assert_string_equal(bench->data.file_path, bench->path);
	assert_null(bench->data.directory);
}

/* Longer than what is read at once. */
static void a_long_pipe_is_kept_whole(void **state)
{
	enum { LONG = (3 << 20) + 7 };
	struct bench *bench = *state;
	char *bytes = malloc(LONG);
	int ends[2];
	pid_t pid;

	assert_non_null(bytes);
	for (size_t i = 0; i < LONG; i++)
		bytes[i] = (char)(i % 251);
	memcpy(bytes, start, sizeof(start));
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid)
		_exit(write_all(ends[1], bytes, LONG) < 0);
	(void)close(ends[1]);
	(void)snprintf(bench->path, sizeof(bench->path), "/dev/fd/%d", ends[0]);
	assert_int_equal(perf_file_open(bench->path, &bench->data, &bench->error), 0);
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(bench->data.file.size, LONG);
	assert_memory_equal(bench->data.file.data, bytes, LONG);
	free(bytes);
}

static void standard_input_may_be_a_pipe(void **state)
{
	struct bench *bench = *state;
	int from = make_pipe(start, sizeof(start));

	assert_int_equal(dup2(from, STDIN_FILENO), STDIN_FILENO);
	(void)close(from);
	assert_int_equal(perf_file_open("-", &bench->data, &bench->error), 0);
	assert_bytes(&bench->data);
	assert_string_equal(bench->data.path, "-");
	assert_string_equal(bench->data.file_path, "-");
}

/* It is read from where it stands. */
static void standard_input_may_be_a_file(void **state)
{
	struct bench *bench = *state;
	int from;

	fake_tree_bytes(&bench->tree, "gone", 4, "file");
	(void)snprintf(bench->path, sizeof(bench->path), "%s/file", bench->tree.path);
	from = open(bench->path, O_RDWR | O_APPEND);
	assert_int_equal(write(from, start, sizeof(start)), sizeof(start));
	assert_int_equal(lseek(from, 4, SEEK_SET), 4);
	assert_int_equal(dup2(from, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(perf_file_open("-", &bench->data, &bench->error), 0);
	assert_bytes(&bench->data);
	perf_file_close(&bench->data);
	bench->data = (struct perf_data){ 0 };
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	assert_int_equal(perf_file_open("-", &bench->data, &bench->error), 0);
	assert_int_equal(bench->data.file.size, 4 + sizeof(start));
	(void)close(from);
}

static void a_pipe_of_something_else_is_not_kept(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(perf_file_open("/dev/zero", &bench->data, &bench->error),
			 -PTVM_BAD_INPUT); /* though it never ends */
	assert_non_null(strstr(bench->error.message, "/dev/zero"));
}

static void what_cannot_be_read_is_told(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(dup2(bench->here, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(perf_file_open("-", &bench->data, &bench->error), -PTVM_SYSTEM);
	assert_int_equal(bench->error.sys_errno, EISDIR);
}

static void a_pipe_without_bytes_is_no_recording(void **state)
{
	struct bench *bench = *state;
	int from = make_pipe("", 0);

	(void)snprintf(bench->path, sizeof(bench->path), "/dev/fd/%d", from);
	assert_int_equal(perf_file_open(bench->path, &bench->data, &bench->error), -PTVM_BAD_INPUT);
	(void)close(from);
}

static void files_of_threads_follow_in_order_of_their_numbers(void **state)
{
	static const char *const names[] = { "data.10", "data.9", "data.0", "data.999999999" };
	static const uint32_t numbers[] = { 0, 9, 10, 999999999 };
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct bench *bench = *state;
	const struct perf_part *parts;
	char path[160], *large = malloc(page + 1);

	assert_non_null(large);
	memset(large, 'x', page + 1);
	add_file(bench, "data");
	for (size_t i = 0; i < 4; i++)
		fake_tree_bytes(&bench->tree, names[i], strlen(names[i]), names[i]);
	fake_tree_bytes(&bench->tree, large, page + 1, "data.9");
	fake_tree_bytes(&bench->tree, large, page, "data.10");
	assert_int_equal(open_name(bench, ""), 0);
	assert_bytes(&bench->data);
	assert_int_equal(bench->data.parts.count, 4);
	parts = bench->data.parts.items;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(parts[i].number, numbers[i]);
	assert_int_equal(parts[0].offset, page);
	assert_int_equal(parts[0].size, 6);
	assert_int_equal(parts[1].offset, 2 * page);
	assert_int_equal(parts[1].size, page + 1);
	assert_int_equal(parts[2].offset, 4 * page);
	assert_int_equal(parts[3].offset, 5 * page);
	assert_int_equal(bench->data.mapping.size, 6 * page);
	assert_ptr_equal(bench->data.mapping.data, bench->data.file.data);
	assert_memory_equal(bench->data.mapping.data + parts[1].offset, large, page + 1);
	assert_memory_equal(bench->data.mapping.data + parts[3].offset, "data.999999999", 14);
	(void)snprintf(path, sizeof(path), "%s/data.10", bench->tree.path);
	assert_string_equal(parts[2].path, path);
	free(large);
}

static void other_names_are_no_files_of_threads(void **state)
{
	static const char *const names[] = { "data.",   "data.x",          "data.1x",
					     "data.-1", "data.1234567890", "xdata.1",
					     "data1",   "data.ptvm-index", "data.7/data" };
	struct bench *bench = *state;

	add_file(bench, "data");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		add_file(bench, names[i]);
	fake_tree_file(&bench->tree, "", "data.8");
	assert_int_equal(open_name(bench, ""), 0);
	assert_int_equal(bench->data.parts.count, 0);
	assert_int_equal(bench->data.mapping.size, sizeof(start));
}

static void files_that_the_header_does_not_know_are_dropped(void **state)
{
	struct bench *bench = *state;

	add_file(bench, "data");
	add_file(bench, "data.1");
	assert_int_equal(open_name(bench, ""), 0);
	assert_int_equal(bench->data.parts.count, 1);
	perf_file_drop_parts(&bench->data);
	assert_int_equal(bench->data.parts.count, 0);
	assert_bytes(&bench->data);
	assert_int_equal(bench->data.mapping.size, sizeof(start));
	perf_file_drop_parts(&bench->data);
	assert_bytes(&bench->data);
}

static void what_none_opened_can_be_closed(void **state)
{
	struct perf_data data = { 0 };

	perf_file_close(&data);
	perf_file_drop_parts(&data);
}

static void the_recording_of_no_name_is_ptvms_before_perfs(void **state)
{
	struct bench *bench = *state;
	const char *name = NULL;

	assert_int_equal(chdir(bench->tree.path), 0);
	assert_int_equal(perf_file_default(&name, &bench->error), -PTVM_NOT_FOUND);
	assert_null(name);
	assert_non_null(strstr(bench->error.message, "-i"));
	add_file(bench, "perf.data");
	assert_int_equal(perf_file_default(&name, &bench->error), 0);
	assert_string_equal(name, "perf.data");
	add_file(bench, "ptvm.data/data");
	assert_int_equal(perf_file_default(&name, &bench->error), 0);
	assert_string_equal(name, "ptvm.data");
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_file_is_mapped_whole),
		WITH_FIXTURE(of_a_directory_it_is_the_data),
		WITH_FIXTURE(what_cannot_be_opened_is_told),
		WITH_FIXTURE(a_directory_without_data_is_no_recording),
		WITH_FIXTURE(an_empty_file_is_no_recording),
		WITH_FIXTURE(the_data_of_a_directory_are_a_regular_file),
		WITH_FIXTURE(a_pipe_is_kept_in_a_file_of_no_name),
		WITH_FIXTURE(a_long_pipe_is_kept_whole),
		WITH_FIXTURE(standard_input_may_be_a_pipe),
		WITH_FIXTURE(standard_input_may_be_a_file),
		WITH_FIXTURE(a_pipe_of_something_else_is_not_kept),
		WITH_FIXTURE(what_cannot_be_read_is_told),
		WITH_FIXTURE(a_pipe_without_bytes_is_no_recording),
		WITH_FIXTURE(files_of_threads_follow_in_order_of_their_numbers),
		WITH_FIXTURE(other_names_are_no_files_of_threads),
		WITH_FIXTURE(files_that_the_header_does_not_know_are_dropped),
		cmocka_unit_test(what_none_opened_can_be_closed),
		WITH_FIXTURE(the_recording_of_no_name_is_ptvms_before_perfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
