#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_feature.h"
#include "host/record/recording_features.h"
#include "host/record/recording_out.h"
#include "host/record/recording_repair.h"
#include "tests/fake_tree.h"

enum {
	FLAGS = 40,
	SAMPLE_TYPE = 24,
	PIECES = 3,
	SWITCH_SIZE = 24,
	TRACE_HEADER = 48,
	TRACE_SIZE = 40,
	STEP = SWITCH_SIZE + TRACE_HEADER + TRACE_SIZE,
	MAX_FILE = 4096,
	ATTRS_OFFSET = 24,
	DATA_OFFSET = 40,
	FEATURES = 72,
};

/* A recording that was killed: a switch and a piece of trace, some times. */
struct bench {
	struct fake_tree tree;
	char path[100];
	uint8_t attr[RECORDING_ATTR_SIZE];
	struct recording_out out;
	struct perf_data data;
	uint8_t file[MAX_FILE];
	size_t size, start;
};

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static size_t read_file(const struct bench *bench, uint8_t data[MAX_FILE])
{
	FILE *file = fopen(bench->path, "rb");
	size_t size;

	assert_non_null(file);
	size = fread(data, 1, MAX_FILE, file);
	assert_int_equal(fclose(file), 0);
	return size;
}

static void write_file(const struct bench *bench, size_t size)
{
	FILE *file = fopen(bench->path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bench->file, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void write_piece(struct bench *bench, uint64_t number)
{
	static const uint8_t bytes[TRACE_SIZE] = { 2, 0x82 };
	const struct ring_bytes piece = { .first = bytes, .first_size = sizeof(bytes) };
	const struct recording_trace trace = { number * TRACE_SIZE, 1, 0, -1, 0 };
	uint8_t record[SWITCH_SIZE] = { PERF_SWITCH, [6] = SWITCH_SIZE };
	const struct ring_bytes whole = { .first = record, .first_size = sizeof(record) };

	put(record + 8, number + 1);
	put(record + 16, 100);
	assert_int_equal(recording_out_records(&bench->out, &whole, NULL), 0);
	assert_int_equal(recording_out_trace(&bench->out, &trace, &piece, NULL), 0);
}

static void record(struct bench *bench, uint32_t type)
{
	const uint64_t id = 100;
	const struct recording_event event = { bench->attr, &id, 1, "x", 0 };

	(void)unlink(bench->path);
	put(bench->attr, (uint64_t)RECORDING_ATTR_SIZE << 32 | type);
	put(bench->attr + 8, 115);
	put(bench->attr + SAMPLE_TYPE, PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER);
	put(bench->attr + FLAGS, PERF_FLAG_SAMPLE_ID_ALL);
	assert_int_equal(recording_out_create(&bench->out, bench->path, &event, 1, NULL), 0);
	bench->start = bench->out.start;
	for (uint64_t i = 0; i < PIECES; i++)
		write_piece(bench, i);
	recording_out_close(&bench->out);
	bench->size = read_file(bench, bench->file);
}

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	(void)snprintf(bench.path, sizeof(bench.path), "%s/data", bench.tree.path);
	record(&bench, 1);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static void repair(const struct bench *bench)
{
	assert_int_equal(recording_repair(bench->path, NULL), 0);
}

static void open_it(struct bench *bench)
{
	perf_data_close(&bench->data);
	assert_int_equal(perf_data_open(bench->path, &bench->data, NULL), 0);
	assert_null(bench->data.bad_reason);
	assert_false(bench->data.truncated);
	assert_int_equal(bench->data.bad_features, 0);
}

/* Bytes of trace in the first `size` of the data. */
static size_t trace_before(size_t size)
{
	const size_t rest = size % STEP, before = STEP - TRACE_SIZE;

	return size / STEP * TRACE_SIZE + (rest > before ? rest - before : 0);
}

static void a_file_cut_at_any_byte_has_all_that_is_whole(void **state)
{
	struct bench *bench = *state;

	for (size_t size = bench->start + SWITCH_SIZE; size <= bench->size; size++) {
		const size_t data = size - bench->start, trace = trace_before(data);

		write_file(bench, size);
		repair(bench);
		open_it(bench);
		assert_int_equal(bench->data.records.count, (data + STEP - SWITCH_SIZE) / STEP);
		assert_int_equal(bench->data.queues.count, trace != 0);
		if (trace)
			assert_int_equal(bench->data.queues.items[0].size, trace);
		assert_int_equal(bench->data.aux_index.count,
				 (trace + TRACE_SIZE - 1) / TRACE_SIZE);
	}
}

static void what_is_repaired_is_complete(void **state)
{
	uint8_t once[MAX_FILE], twice[MAX_FILE];
	struct bench *bench = *state;
	size_t size;

	repair(bench);
	size = read_file(bench, once);
	assert_true(size > bench->size);
	repair(bench);
	assert_int_equal(read_file(bench, twice), size);
	assert_memory_equal(once, twice, size);
}

static void features_that_were_never_written_are_not_promised(void **state)
{
	struct bench *bench = *state;

	bench->file[FEATURES] = 0xfe;
	write_file(bench, bench->size);
	repair(bench);
	open_it(bench);
	assert_int_equal(bench->data.features.bitmap[0], 1 << 18);
	assert_int_equal(bench->data.aux_index.count, PIECES);
}

/* Writes the file with features that is kept beside a recording. */
static void keep(const struct bench *bench, const struct recording_features *features)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s.ptvm-features", bench->path);
	(void)unlink(path);
	assert_int_equal(recording_features_keep(features, path, NULL), 0);
}

static bool is_kept(const struct bench *bench)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s.ptvm-features", bench->path);
	return !access(path, F_OK);
}

static void features_that_were_kept_come_back(void **state)
{
	static const struct recording_features features = { { { 1, "formats", 7 },
							      { 7, "\4\0\0\0\2\0\0\0", 8 },
							      { 21, "later, and longer", 17 } },
							    3 };
	struct bench *bench = *state;

	keep(bench, &features);
	repair(bench);
	open_it(bench);
	assert_int_equal(bench->data.features.bitmap[0], 1 << 1 | 1 << 7 | 1 << 18 | 1 << 21);
	assert_int_equal(bench->data.features.cpus_available, 4);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_TRACING_DATA].size, 7);
	assert_memory_equal(bench->data.features.payloads[PERF_FEATURE_TRACING_DATA].data,
			    "formats", 7);
	assert_memory_equal(bench->data.features.payloads[PERF_FEATURE_SAMPLE_TIME].data,
			    "later, and longer", 17);
	assert_int_equal(bench->data.aux_index.count, PIECES);
	assert_false(is_kept(bench));
}

static void features_that_were_cut_off_do_no_harm(void **state)
{
	static const struct recording_features features = { { { 7, "\4\0\0\0\2\0\0\0", 8 } }, 1 };
	struct bench *bench = *state;
	struct stat about;
	char path[128];

	keep(bench, &features);
	(void)snprintf(path, sizeof(path), "%s.ptvm-features", bench->path);
	assert_int_equal(stat(path, &about), 0);
	for (off_t size = 0; size < about.st_size; size++) {
		keep(bench, &features);
		assert_int_equal(truncate(path, size), 0);
		write_file(bench, bench->size);
		repair(bench);
		open_it(bench);
		assert_int_equal(bench->data.aux_index.count, PIECES);
		assert_false(is_kept(bench));
	}
}

static void a_header_that_points_behind_the_data_is_left_alone(void **state)
{
	struct bench *bench = *state;
	const size_t attrs = (size_t)load_le(bench->file + ATTRS_OFFSET, 8);
	const size_t ids = attrs + RECORDING_ATTR_SIZE; /* where those of the first event are */
	const struct {
		size_t at;
		uint64_t value;
	} changes[] = {
		{ DATA_OFFSET, 104 },
		{ ATTRS_OFFSET + 8, bench->start },
		{ ids, bench->start + 8 },
		{ ids + 8, bench->start },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		const uint64_t before = load_le(bench->file + changes[i].at, 8);
		uint8_t after[MAX_FILE];
		struct ptvm_error error = { 0 };

		put(bench->file + changes[i].at, changes[i].value);
		write_file(bench, bench->size);
		assert_int_equal(recording_repair(bench->path, &error), -PTVM_BAD_INPUT);
		assert_non_null(strstr(error.message, "points to places behind the data"));
		assert_int_equal(read_file(bench, after), bench->size);
		assert_memory_equal(bench->file, after, bench->size);
		put(bench->file + changes[i].at, before);
	}
}

/* By its recorder, or by ptvm correlate. Others in its directory are not. */
static void one_in_use_is_left_alone(void **state)
{
	struct bench *bench = *state;
	const int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
	const int directory = open(bench->tree.path, O_RDONLY | O_CLOEXEC);
	uint8_t after[MAX_FILE];
	struct ptvm_error error = { 0 };

	assert_true(fd >= 0 && directory >= 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(recording_repair(bench->path, &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "/data: another ptvm is at work"));
	assert_int_equal(read_file(bench, after), bench->size);
	assert_memory_equal(bench->file, after, bench->size);
	assert_int_equal(close(fd), 0);
	assert_int_equal(flock(directory, LOCK_EX), 0);
	repair(bench);
	assert_int_equal(close(directory), 0);
}

static void what_is_no_recording_is_told(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "my thesis", "data");
	assert_int_equal(recording_repair(bench->path, NULL), -PTVM_BAD_INPUT);
	assert_int_equal(recording_repair("/nowhere", NULL), -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_cut_at_any_byte_has_all_that_is_whole),
		TEST(what_is_repaired_is_complete),
		TEST(features_that_were_never_written_are_not_promised),
		TEST(features_that_were_kept_come_back),
		TEST(features_that_were_cut_off_do_no_harm),
		TEST(a_header_that_points_behind_the_data_is_left_alone),
		TEST(one_in_use_is_left_alone),
		TEST(what_is_no_recording_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
