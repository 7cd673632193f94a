#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "host/record/recording_out.h"

enum { ATTRS = 2, FLAGS = 40, SAMPLE_TYPE = 24, TRACE_SIZE = 1000 };

struct bench {
	char path[64];
	uint8_t attrs[ATTRS][RECORDING_ATTR_SIZE];
	uint64_t ids[3];
	struct recording_event events[ATTRS];
	uint8_t trace[TRACE_SIZE];
	struct recording_out out;
	struct perf_data data;
};

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	(void)snprintf(bench.path, sizeof(bench.path), "/tmp/ptvm-recording-%d", getpid());
	for (int i = 0; i < ATTRS; i++) {
		put(bench.attrs[i], (uint64_t)RECORDING_ATTR_SIZE << 32 | 1);
		put(bench.attrs[i] + SAMPLE_TYPE, PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER);
		put(bench.attrs[i] + FLAGS, PERF_FLAG_SAMPLE_ID_ALL);
	}
	for (size_t i = 0; i < 3; i++)
		bench.ids[i] = 100 + i;
	bench.events[0] = (struct recording_event){ bench.attrs[0], bench.ids, 2 };
	bench.events[1] = (struct recording_event){ bench.attrs[1], bench.ids + 2, 1 };
	memset(bench.trace, 0x5a, sizeof(bench.trace));
	*state = &bench;
	return recording_out_create(&bench.out, bench.path, bench.events, ATTRS, NULL);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	recording_out_close(&bench->out);
	return unlink(bench->path);
}

/* A context switch of event 102, at `time`. */
static int write_switch(struct bench *bench, uint64_t time)
{
	uint8_t record[24];
	const struct ring_bytes bytes = { record, record + 10, 10, sizeof(record) - 10, 0 };

	put(record, (uint64_t)sizeof(record) << 48 | PERF_SWITCH);
	put(record + 8, time);
	put(record + 16, 102);
	return recording_out_records(&bench->out, &bytes, NULL);
}

static int write_trace(struct bench *bench, uint64_t offset, uint64_t size)
{
	const struct recording_trace trace = { offset, 1, 3, -1, 3 };
	const struct ring_bytes bytes = { bench->trace, bench->trace + size / 2, size / 2,
					  size - size / 2, 0 };

	return recording_out_trace(&bench->out, &trace, &bytes, NULL);
}

static void open_it(struct bench *bench)
{
	perf_data_close(&bench->data);
	assert_int_equal(perf_data_open(bench->path, &bench->data, NULL), 0);
	assert_null(bench->data.bad_reason);
}

static void events_have_their_ids(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(write_switch(bench, 5), 0);
	assert_int_equal(recording_out_finish(&bench->out, NULL, 0, NULL), 0);
	open_it(bench);
	assert_false(bench->data.truncated);
	assert_int_equal(bench->data.events.count, ATTRS);
	assert_int_equal(bench->data.events.items[0].id_count, 2);
	assert_int_equal(bench->data.events.items[1].id_count, 1);
	assert_int_equal(bench->data.events.items[1].ids[0], 102);
	assert_int_equal(bench->data.records.count, 1);
	assert_int_equal(bench->data.records.items[0].id, 102);
	assert_int_equal(bench->data.records.items[0].time, 5);
}

static void trace_is_padded_and_indexed(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(write_trace(bench, 0, 999), 0);
	assert_int_equal(recording_out_round(&bench->out, NULL), 0);
	assert_int_equal(write_trace(bench, 999, 16), 0);
	assert_int_equal(recording_out_finish(&bench->out, NULL, 0, NULL), 0);
	open_it(bench);
	assert_int_equal(bench->data.aux_index.count, 2);
	assert_int_equal(bench->data.queues.count, 1);
	assert_int_equal(bench->data.queues.items[0].cpu, 3);
	assert_int_equal(bench->data.data_size, 48 + 1000 + 8 + 48 + 16);
}

static void features_are_found_on_both_sides_of_the_index(void **state)
{
	static const char before[] = "\4\0\0\0abc", after[] = "12345678ABCDEFGH";
	const struct recording_feature features[] = { { 3, before, sizeof(before) },
						      { 21, after, sizeof(after) - 1 } };
	struct bench *bench = *state;

	assert_int_equal(write_trace(bench, 0, 8), 0);
	assert_int_equal(recording_out_finish(&bench->out, features, 2, NULL), 0);
	open_it(bench);
	assert_string_equal(bench->data.features.hostname, "abc");
	assert_memory_equal(&bench->data.features.first_sample_ns, "12345678", 8);
	assert_memory_equal(&bench->data.features.last_sample_ns, "ABCDEFGH", 8);
	assert_int_equal(bench->data.aux_index.count, 1);
	assert_int_equal(bench->data.bad_features, 0);
}

static void the_file_is_private_and_never_replaced(void **state)
{
	struct bench *bench = *state;
	struct recording_out other = { 0 };
	struct ptvm_error error = { 0 };
	struct stat status;

	assert_int_equal(stat(bench->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(recording_out_create(&other, bench->path, bench->events, ATTRS, &error),
			 -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "File exists"));
	recording_out_close(&other);
}

/* Whatever was written last when it was killed, it decodes so far. */
/* As ptvm correlate would. */
static void nobody_changes_it_meanwhile(void **state)
{
	struct bench *bench = *state;
	const int fd = open(bench->path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	recording_out_close(&bench->out);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(close(fd), 0);
}

static void what_is_not_finished_can_be_read_after_each_write(void **state)
{
	struct bench *bench = *state;

	for (uint64_t i = 1; i < 20; i++) {
		assert_int_equal(write_switch(bench, i), 0);
		open_it(bench);
		assert_int_equal(bench->data.records.count, i);
		assert_int_equal(write_trace(bench, i * 8, 8), 0);
		open_it(bench);
		assert_int_equal(bench->data.queues.count, 1);
	}
}

static void set_limit(uint64_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk is full after any number of bytes: all records that were written are whole. */
static void a_full_disk_leaves_whole_records(void **state)
{
	struct bench *bench = *state;
	uint64_t before = bench->out.end;

	(void)signal(SIGXFSZ, SIG_IGN);
	for (uint64_t room = 0; room < 48 + TRACE_SIZE; room += 7) {
		set_limit(before + room);
		assert_int_equal(write_trace(bench, 0, TRACE_SIZE), -PTVM_SYSTEM);
		set_limit(RLIM_INFINITY);
		assert_int_equal(bench->out.end, before);
		open_it(bench);
		assert_int_equal(bench->data.file.size, before);
	}
	assert_int_equal(write_trace(bench, 0, TRACE_SIZE), 0);
	open_it(bench);
	assert_int_equal(bench->data.queues.count, 1);
}

static void what_a_full_disk_did_not_finish_can_be_finished_later(void **state)
{
	struct bench *bench = *state;
	uint64_t end;

	assert_int_equal(write_trace(bench, 0, TRACE_SIZE), 0);
	end = bench->out.end;
	(void)signal(SIGXFSZ, SIG_IGN);
	/* A section table of one, a count, and where one piece is. */
	for (uint64_t room = 0; room < 16 + 8 + 16; room++) {
		set_limit(end + room);
		assert_int_equal(recording_out_finish(&bench->out, NULL, 0, NULL), -PTVM_SYSTEM);
		set_limit(RLIM_INFINITY);
		open_it(bench);
		assert_int_equal(bench->data.file.size, end);
		assert_int_equal(bench->data.queues.count, 1);
	}
	assert_int_equal(recording_out_finish(&bench->out, NULL, 0, NULL), 0);
	open_it(bench);
	assert_false(bench->data.truncated);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_have_their_ids),
		TEST(trace_is_padded_and_indexed),
		TEST(features_are_found_on_both_sides_of_the_index),
		TEST(the_file_is_private_and_never_replaced),
		TEST(nobody_changes_it_meanwhile),
		TEST(what_is_not_finished_can_be_read_after_each_write),
		TEST(a_full_disk_leaves_whole_records),
		TEST(what_a_full_disk_did_not_finish_can_be_finished_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
