#include "decode/print/record_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/flow_bench.h"
#include "tests/perf_build.h"

/* Records of thread 6 of process 5 on CPU 0, one of each kind, at 1 s, 2 s and so on. */

enum { PID = 5, TID = 6, SAMPLED = 2 };

static const uint64_t second = 1000000000;

struct fixture {
	struct perf_build build;
	struct perf_data data;
	struct sideband *sideband;
	struct machines machines;
	struct print_config config;
	struct record_lines lines;
};

static struct build_trailer at(uint64_t seconds, uint32_t cpu)
{
	return (struct build_trailer){ PID, TID, seconds * second, cpu, 1 };
}

static void add_records(struct perf_build *build)
{
	static const uint32_t comm[] = { PID, TID, 0x656d6f73 /* "some" */, 0 };
	static const uint32_t fork[] = { 50, PID, 60, TID, 0, 0 };
	static const uint64_t lost[] = { 1, 4711 }, sample[] = { SAMPLED, 0x1000 };
	static const uint64_t map[] = {
		PID | (uint64_t)TID << 32, 0x400000, 0x1000, 0, 0x6e69622f, 0
	};

	perf_build_kernel(build, PERF_COMM, 0, comm, sizeof(comm), at(1, 0));
	perf_build_kernel(build, PERF_FORK, 0, fork, sizeof(fork), at(2, 0));
	perf_build_kernel(build, PERF_EXIT, 0, fork, sizeof(fork), at(3, 0));
	perf_build_kernel(build, PERF_MMAP, 2, map, sizeof(map), at(4, 0));
	perf_build_kernel(build, PERF_SWITCH, 1 << 13, NULL, 0, at(5, 0));
	perf_build_kernel(build, PERF_LOST, 0, lost, sizeof(lost), at(6, 0));
	perf_build_record(build, PERF_SAMPLE, 2, sample, sizeof(sample));
	perf_build_kernel(build, PERF_SWITCH, 0, NULL, 0, at(7, 1));
}

static void open_recording(struct fixture *f)
{
	assert_int_equal(perf_data_open_bytes(perf_build_file(&f->build), &f->data, NULL), 0);
	assert_int_equal(sideband_build(&f->data, &f->sideband), 0);
	assert_true(bench_machines_new(&f->machines));
	f->config = (struct print_config){ .fields = FIELD_TID | FIELD_CPU | FIELD_TIME,
					   .modifier = "",
					   .data = &f->data,
					   .machines = &f->machines,
					   .sideband = f->sideband,
					   .pt = &f->data.pt };
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	*state = &fixture;
	return 0;
}

static int set_up_with_trace(void **state)
{
	struct fixture *f;

	(void)set_up(state);
	f = *state;
	perf_build_pt(&f->build, 0, 1);
	perf_build_event(&f->build, 0, 0, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP, SAMPLED, 128);
	add_records(&f->build);
	open_recording(f);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	record_lines_free(&f->lines);
	sideband_free(f->sideband);
	machines_free(&f->machines);
	perf_data_close(&f->data);
	perf_build_free(&f->build);
	return 0;
}

static void begin(struct fixture *f, unsigned records)
{
	record_lines_free(&f->lines);
	f->config.records = records;
	assert_int_equal(record_lines_init(&f->lines, &f->config), 0);
}

/* The present line; goes to the next one. */
static void expect_line(struct fixture *f, const char *expected)
{
	const struct sample_origin none = { 0 };

	assert_true(f->lines.time_ns != UINT64_MAX);
	record_lines_make(&f->lines, &none);
	text_putc(&f->lines.text, 0);
	assert_string_equal(f->lines.text.data, expected);
	record_lines_next(&f->lines);
}

static void expect_end(const struct fixture *f)
{
	assert_int_equal(f->lines.time_ns, UINT64_MAX);
}

static void a_record_is_a_line_in_the_words_of_a_dump(void **state)
{
	struct fixture *f = *state;

	begin(f, RECORDS_TASK | RECORDS_MMAP | RECORDS_LOST);
	expect_line(f, "    6 [000]     1.000000: PERF_RECORD_COMM: some:5/6\n");
	expect_line(f, "    6 [000]     2.000000: PERF_RECORD_FORK(50:60):(5:6)\n");
	expect_line(f, "    6 [000]     3.000000: PERF_RECORD_EXIT(50:60):(5:6)\n");
	expect_line(f, "    6 [000]     4.000000: PERF_RECORD_MMAP 5/6: [0x400000(0x1000) @ 0]: "
		       "x /bin\n");
	expect_line(f, "    6 [000]     6.000000: PERF_RECORD_LOST lost 4711\n");
	expect_end(f);
}

static void each_kind_is_chosen_by_itself(void **state)
{
	static const uint64_t expected[][4] = {
		[RECORDS_SWITCH] = { 5, 7 },
		[RECORDS_TASK] = { 1, 2, 3 },
		[RECORDS_MMAP] = { 4 },
		[RECORDS_LOST] = { 6 },
	};
	struct fixture *f = *state;

	for (unsigned records = RECORDS_SWITCH; records <= RECORDS_LOST; records *= 2) {
		begin(f, records);
		for (unsigned i = 0; expected[records][i]; i++) {
			assert_int_equal(f->lines.time_ns, expected[records][i] * second);
			record_lines_next(&f->lines);
		}
		expect_end(f);
		record_lines_next(&f->lines);
		expect_end(f);
	}
}

static void no_kind_is_nothing(void **state)
{
	struct fixture *f = *state;

	begin(f, 0);
	expect_end(f);
	f->config.data = NULL;
	begin(f, RECORDS_TASK);
	expect_end(f);
	record_lines_next(&f->lines);
	expect_end(f);
}

static void records_of_other_cpus_are_left_out(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(number_ranges_parse("-C", "1", &f->config.cpus, NULL), 0);
	begin(f, RECORDS_SWITCH);
	expect_line(f, "    6 [001]     7.000000: PERF_RECORD_SWITCH IN         \n");
	expect_end(f);
}

static void without_time_in_the_trace_records_come_first(void **state)
{
	struct fixture *f = *state;

	f->config.timeless = true;
	begin(f, RECORDS_LOST);
	assert_int_equal(f->lines.time_ns, 0);
}

static void a_name_is_that_of_the_thread_a_record_is_about(void **state)
{
	struct fixture *f = *state;

	f->config.fields = FIELD_COMM;
	begin(f, RECORDS_TASK);
	expect_line(f, "            some PERF_RECORD_COMM: some:5/6\n");
	expect_line(f, "            some PERF_RECORD_FORK(50:60):(5:6)\n");
}

static void samples_have_the_fields_of_their_event(void **state)
{
	struct fixture *f = *state;
	const struct sample_origin none = { 0 };

	begin(f, RECORDS_SAMPLE);
	record_lines_make(&f->lines, &none);
	assert_int_equal(f->lines.text.size, 0);
	assert_true(f->lines.left_out);
	f->config.sample_fields[EVENT_HARDWARE] = FIELD_IP;
	begin(f, RECORDS_SAMPLE);
	record_lines_make(&f->lines, &none);
	assert_non_null(memmem(f->lines.text.data, f->lines.text.size, "1000", 4));
	assert_false(f->lines.left_out);
	record_lines_next(&f->lines);
	expect_end(f);
}

/* Thread 6 makes a record about thread 7, which has another name. */
static void the_name_is_not_that_of_who_made_the_record(void **state)
{
	static const uint32_t comm[] = { PID, 7, 0x656e6f /* "one" */, 0 };
	static const uint32_t task[] = { PID, PID, 7, TID, 0, 0 };
	static const uint64_t map[] = {
		PID | (uint64_t)7 << 32, 0x400000, 0x1000, 0, 0x6e69622f, 0
	};
	struct fixture *f = *state;

	perf_build_pt(&f->build, 0, 1);
	perf_build_kernel(&f->build, PERF_COMM, 0, comm, sizeof(comm), at(1, 0));
	perf_build_kernel(&f->build, PERF_MMAP, 2, map, sizeof(map), at(2, 0));
	perf_build_kernel(&f->build, PERF_MMAP, 4, map, sizeof(map), at(3, 0));
	perf_build_kernel(&f->build, PERF_EXIT, 0, task, sizeof(task), at(4, 0));
	perf_build_kernel(&f->build, PERF_SWITCH, 0, NULL, 0, at(5, 0));
	open_recording(f);
	f->config.fields = FIELD_COMM;
	begin(f, RECORDS_TASK | RECORDS_MMAP | RECORDS_SWITCH);
	expect_line(f, "             one PERF_RECORD_COMM: one:5/7\n");
	expect_line(f, "             one PERF_RECORD_MMAP 5/7: [0x400000(0x1000) @ 0]: x /bin\n");
	expect_line(f, "       [guest/5] PERF_RECORD_MMAP 5/7: [0x400000(0x1000) @ 0]: x /bin\n");
	expect_line(f, "             one PERF_RECORD_EXIT(5:7):(5:6)\n");
	expect_line(f, "              :6 PERF_RECORD_SWITCH IN         \n");
	expect_end(f);
}

/* There they came with the samples, whose fields they have. */
static void without_a_trace_a_line_is_like_those_of_samples(void **state)
{
	static const uint64_t lost[] = { 1, 4711 };
	struct fixture *f = *state;

	perf_build_event(&f->build, 0, 0, BUILD_SAMPLE_TYPE, 1, 128);
	perf_build_kernel(&f->build, PERF_LOST, 0, lost, sizeof(lost), at(6, 0));
	open_recording(f);
	f->config.sample_fields[EVENT_HARDWARE] = FIELD_CPU;
	begin(f, RECORDS_LOST);
	expect_line(f, "[000] PERF_RECORD_LOST lost 4711\n");
	f->config.sample_fields[EVENT_HARDWARE] = 0;
	begin(f, RECORDS_LOST);
	expect_line(f, "    6 [000]     6.000000: PERF_RECORD_LOST lost 4711\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_with_trace, tear_down)
#define TEST_OTHERS(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_a_line_in_the_words_of_a_dump),
		TEST(each_kind_is_chosen_by_itself),
		TEST(no_kind_is_nothing),
		TEST(records_of_other_cpus_are_left_out),
		TEST(without_time_in_the_trace_records_come_first),
		TEST(a_name_is_that_of_the_thread_a_record_is_about),
		TEST(samples_have_the_fields_of_their_event),
		TEST_OTHERS(the_name_is_not_that_of_who_made_the_record),
		TEST_OTHERS(without_a_trace_a_line_is_like_those_of_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
