#include "decode/perf/trace_index.h"

#include <fcntl.h>
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

#include "decode/base/mapped_file.h"
#include "tests/perf_build.h"

enum { POINTS = 20 };

struct fixture {
	char folder[32], data[64], index[80];
	struct perf_data recording;
};

static void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

/* A recording with two queues. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct perf_build build = { 0 };
	struct ptvm_error error = { 0 };
	const uint8_t trace[64] = { 2, 0x82 };
	struct bytes file;

	assert_non_null(fixture);
	strcpy(fixture->folder, "/tmp/test-index-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	(void)snprintf(fixture->data, sizeof(fixture->data), "%s/data", fixture->folder);
	(void)snprintf(fixture->index, sizeof(fixture->index), "%s.ptvm-index", fixture->data);
	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, trace, sizeof(trace));
	perf_build_aux(&build, 1, 0, trace, sizeof(trace));
	file = perf_build_file(&build);
	write_file(fixture->data, file.data, file.size);
	perf_build_free(&build);
	assert_int_equal(perf_data_open(fixture->folder, &fixture->recording, &error), 0);
	assert_int_equal(fixture->recording.queues.count, 2);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	perf_data_close(&fixture->recording);
	(void)unlink(fixture->index);
	(void)unlink(fixture->data);
	assert_int_equal(rmdir(fixture->folder), 0); /* no draft was left either */
	free(fixture);
	return 0;
}

static void add_points(struct trace_index *index, size_t queue, unsigned count)
{
	for (unsigned i = 1; i <= count; i++) {
		struct pt_segment segment = { .from = i * 100, .context = { .bits = 64 } };

		segment.clock.now = i;
		assert_int_equal(trace_points_add(&index->queues[queue], &segment), 0);
	}
}

static void save(const struct trace_index *index)
{
	struct ptvm_error error = { 0 };

	if (trace_index_save(index, &error))
		fail_msg("%s", error.message);
}

static void keep_index(struct fixture *fixture)
{
	struct trace_index index;

	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	assert_null(index.complaint);
	add_points(&index, 1, POINTS);
	save(&index);
	trace_index_free(&index);
}

static void assert_refused(struct fixture *fixture, const char *complaint)
{
	struct trace_index index;

	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	if (complaint)
		assert_string_equal(index.complaint ? index.complaint : "none", complaint);
	else
		assert_null(index.complaint);
	assert_int_equal(index.queues[0].count + index.queues[1].count, 0);
	trace_index_free(&index);
}

static void what_is_kept_is_found_again(void **state)
{
	struct fixture *fixture = *state;
	struct trace_index index;

	keep_index(fixture);
	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	assert_null(index.complaint);
	assert_int_equal(index.queues[0].count, 0);
	assert_int_equal(index.queues[1].count, POINTS);
	assert_int_equal(index.queues[1].items[POINTS - 1].position, POINTS * 100);
	trace_index_free(&index);
}

static void a_few_points_are_not_worth_a_file(void **state)
{
	struct fixture *fixture = *state;
	struct trace_index index;

	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	add_points(&index, 0, 10);
	save(&index);
	assert_int_equal(access(fixture->index, F_OK), -1);
	trace_index_free(&index);
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
	struct ptvm_error error = { 0 };
	struct fixture *fixture = *state;
	struct trace_index index;

	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	add_points(&index, 0, POINTS);
	free(index.path);
	index.path = strdup("/nonexistent/data.ptvm-index");
	assert_int_equal(trace_index_save(&index, &error), -PTVM_SYSTEM);
	trace_index_free(&index);
}

/* As one that was copied or corrected; this is no reason to complain, and the next pass makes
 * another. */
static void the_index_of_another_state_of_a_recording_is_replaced(void **state)
{
	struct fixture *fixture = *state;
	struct trace_index index;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 12345 } };

	keep_index(fixture);
	assert_int_equal(utimensat(AT_FDCWD, fixture->data, times, 0), 0);
	assert_refused(fixture, NULL);
	keep_index(fixture);
	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	assert_int_equal(index.queues[1].count, POINTS);
	trace_index_free(&index);
}

/* perf reads all files data.* beside those of several threads. */
static void none_lies_beside_the_parts_of_several_threads(void **state)
{
	struct fixture *fixture = *state;
	struct perf_data recording = fixture->recording;
	struct trace_index index;

	recording.parts.count = 1;
	assert_int_equal(trace_index_open(&recording, &index), 0);
	add_points(&index, 1, POINTS);
	save(&index);
	assert_int_equal(access(fixture->index, F_OK), -1);
	trace_index_free(&index);
}

static void an_index_that_others_may_write_is_not_used(void **state)
{
	struct fixture *fixture = *state;

	keep_index(fixture);
	assert_int_equal(chmod(fixture->index, 0666), 0);
	assert_refused(fixture, "is of somebody else");
	assert_int_equal(chmod(fixture->index, 0602), 0);
	assert_refused(fixture, "is of somebody else");
}

static void an_index_of_somebody_else_is_not_used(void **state)
{
	enum { SOMEBODY = 4711 };
	struct fixture *fixture = *state;
	struct trace_index index;

	if (geteuid())
		skip();
	keep_index(fixture);
	assert_int_equal(chown(fixture->index, SOMEBODY, 0), 0);
	assert_refused(fixture, "is of somebody else");
	assert_int_equal(chown(fixture->data, SOMEBODY, 0), 0); /* theirs is the recording, too */
	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	assert_null(index.complaint);
	assert_int_equal(index.queues[1].count, POINTS);
	trace_index_free(&index);
}

/* Every bit that is wrong is found, wherever it is. */
static void a_damaged_index_is_not_used(void **state)
{
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };
	struct trace_index index;
	struct bytes file;
	uint8_t *copy;

	keep_index(fixture);
	assert_int_equal(mapped_file_open(fixture->index, &file, &error), 0);
	copy = malloc(file.size);
	assert_non_null(copy);
	memcpy(copy, file.data, file.size);
	assert_int_equal(trace_index_open(&fixture->recording, &index), 0);
	trace_points_free(&index.queues[1]);
	for (size_t i = 0; i < file.size; i += 5) {
		copy[i] ^= 0x10;
		assert_int_equal(trace_index_read(&index, (struct bytes){ copy, file.size }),
				 -PTVM_BAD_INPUT);
		assert_int_equal(!index.complaint, i / 8 == 1); /* another state */
		copy[i] ^= 0x10;
	}
	for (size_t size = 0; size < file.size; size += 8)
		assert_int_equal(trace_index_read(&index, (struct bytes){ copy, size }),
				 -PTVM_BAD_INPUT);
	assert_int_equal(index.queues[1].count, 0);
	assert_int_equal(trace_index_read(&index, (struct bytes){ copy, file.size }), 0);
	assert_int_equal(index.queues[1].count, POINTS);
	trace_index_free(&index);
	free(copy);
	mapped_file_close(&file);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_kept_is_found_again),
		TEST(a_few_points_are_not_worth_a_file),
		TEST(a_folder_that_cannot_be_written_is_an_error),
		TEST(the_index_of_another_state_of_a_recording_is_replaced),
		TEST(none_lies_beside_the_parts_of_several_threads),
		TEST(an_index_that_others_may_write_is_not_used),
		TEST(an_index_of_somebody_else_is_not_used),
		TEST(a_damaged_index_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
