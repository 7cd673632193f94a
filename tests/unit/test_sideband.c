#include "decode/perf/sideband.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/perf_build.h"

enum { OUT = 1 << 13 };

struct fixture {
	struct perf_build build;
	struct perf_data data;
	struct sideband *sideband;
};

static void finish(struct fixture *f)
{
	struct ptvm_error error = { 0 };

	if (perf_data_open_bytes(perf_build_file(&f->build), &f->data, &error))
		fail_msg("%s", error.message);
	assert_int_equal(sideband_build(&f->data, &f->sideband), 0);
}

static void release(struct fixture *f)
{
	sideband_free(f->sideband);
	perf_data_close(&f->data);
	perf_build_free(&f->build);
}

static void add_wide(struct fixture *f, uint16_t misc, uint64_t time, uint32_t self, uint32_t other)
{
	const uint32_t body[] = { other, other };

	perf_build_kernel(&f->build, PERF_SWITCH_CPU_WIDE, misc, body, sizeof(body),
			  (struct build_trailer){ self, self, time, 1, 1 });
}

static void add_comm(struct fixture *f, uint64_t time, uint32_t pid, uint32_t tid, const char *name)
{
	uint8_t body[16] = { 0 };

	memcpy(body, &pid, 4);
	memcpy(body + 4, &tid, 4);
	memcpy(body + 8, name, strlen(name));
	perf_build_kernel(&f->build, PERF_COMM, 0, body, sizeof(body),
			  (struct build_trailer){ pid, tid, time, 0, 1 });
}

static void add_fork(struct fixture *f, uint64_t time, uint32_t parent, uint32_t child)
{
	const uint32_t body[] = { child, parent, child, parent, (uint32_t)time, 0 };

	perf_build_kernel(&f->build, PERF_FORK, 0, body, sizeof(body),
			  (struct build_trailer){ parent, parent, time, 0, 1 });
}

static void expect_switch(const struct fixture *f, int32_t cpu, size_t index, uint64_t time,
			  int32_t tid)
{
	const struct switch_entry *entries;
	size_t count;

	entries = sideband_switches(f->sideband, cpu, &count);
	assert_true(index < count);
	assert_int_equal(entries[index].time, time);
	assert_int_equal(entries[index].tid, tid);
}

static void leaving_names_the_next_thread(void **state)
{
	struct fixture f = { 0 };
	size_t count;

	perf_build_pt(&f.build, 0, 1);
	add_wide(&f, OUT, 10, 7, 8);
	add_wide(&f, 0, 11, 8, 7);
	add_wide(&f, OUT, 20, 8, 0);
	add_wide(&f, 0, 31, 9, 0); /* the record of leaving was lost */
	finish(&f);
	(void)sideband_switches(f.sideband, 1, &count);
	assert_int_equal(count, 3);
	expect_switch(&f, 1, 0, 10, 8);
	expect_switch(&f, 1, 1, 20, 0);
	expect_switch(&f, 1, 2, 31, 9);
	assert_null(sideband_switches(f.sideband, 0, &count));
	assert_null(sideband_switches(f.sideband, 77, &count));
	assert_null(sideband_switches(f.sideband, -1, &count));
	release(&f);
}

static void a_switch_begins_before_it_settles(void **state)
{
	static const struct switch_entry switches[] = { { .time = 90, .settled = 100 },
							{ .time = 190, .settled = 190 } };

	assert_int_equal(switches_begun(switches, 2, 89), 0);
	assert_int_equal(switches_begun(switches, 2, 90), 1);
	assert_int_equal(switches_settled(switches, 2, 99), 0);
	assert_int_equal(switches_settled(switches, 2, 100), 1);
	assert_int_equal(switches_begun(switches, 2, 190), 2);
	assert_int_equal(switches_settled(switches, 2, 190), 2);
	assert_int_equal(switches_begun(NULL, 0, 1), 0);
}

static void own_switches_and_itrace_start_count_too(void **state)
{
	const uint32_t body[] = { 5, 6 };
	struct fixture f = { 0 };

	perf_build_pt(&f.build, 0, 1);
	perf_build_kernel(&f.build, PERF_ITRACE_START, 0, body, sizeof(body),
			  (struct build_trailer){ 5, 6, 10, 2, 1 });
	perf_build_kernel(&f.build, PERF_SWITCH, OUT, NULL, 0,
			  (struct build_trailer){ 5, 6, 20, 2, 1 });
	perf_build_kernel(&f.build, PERF_SWITCH, 0, NULL, 0,
			  (struct build_trailer){ 5, 9, 30, 2, 1 });
	finish(&f);
	expect_switch(&f, 2, 0, 10, 6);
	expect_switch(&f, 2, 1, 30, 9);
	assert_int_equal(sideband_pid_of(f.sideband, 9), 5);
	assert_int_equal(sideband_pid_of(f.sideband, 10), -1);
	release(&f);
}

/* More often than is kept, in many threads: what was said last counts. */
static void the_last_process_of_a_thread_is_its_process(void **state)
{
	enum { THREADS = 50, TIMES = 200 };
	struct fixture f = { 0 };

	perf_build_pt(&f.build, 0, 1);
	for (int32_t i = 0; i < THREADS * TIMES; i++)
		perf_build_kernel(&f.build, PERF_SWITCH, 0, NULL, 0,
				  (struct build_trailer){ 1000 + i / THREADS, 100 + i % THREADS,
							  10 + (uint64_t)i, 2, 1 });
	finish(&f);
	for (int32_t i = 0; i < THREADS; i++)
		assert_int_equal(sideband_pid_of(f.sideband, 100 + i), 1000 + TIMES - 1);
	assert_int_equal(sideband_pid_of(f.sideband, 99), -1);
	assert_int_equal(sideband_pid_of(f.sideband, 100 + THREADS), -1);
	release(&f);
}

static void names_change_and_are_inherited(void **state)
{
	struct fixture f = { 0 };

	perf_build_pt(&f.build, 0, 1);
	add_comm(&f, 0, 5, 5, "init");
	add_comm(&f, 50, 5, 5, "later");
	add_fork(&f, 60, 5, 6);
	add_fork(&f, 70, 6, 7);
	add_fork(&f, 75, 7, 3); /* numbers begin again */
	add_comm(&f, 80, 7, 7, "own");
	finish(&f);
	assert_string_equal(sideband_comm(f.sideband, 5, 49), "init");
	assert_string_equal(sideband_comm(f.sideband, 5, 50), "later");
	assert_string_equal(sideband_comm(f.sideband, 6, 60), "later");
	assert_string_equal(sideband_comm(f.sideband, 7, 79), "later");
	assert_string_equal(sideband_comm(f.sideband, 7, 90), "own");
	assert_string_equal(sideband_comm(f.sideband, 3, 90), "later");
	assert_null(sideband_comm(f.sideband, 6, 59));
	assert_null(sideband_comm(f.sideband, 8, 99));
	assert_string_equal(sideband_comm(f.sideband, 0, 1), "swapper");
	assert_int_equal(sideband_comm_until(f.sideband, 5, 49), 50);
	assert_int_equal(sideband_comm_until(f.sideband, 5, 50), UINT64_MAX);
	assert_int_equal(sideband_comm_until(f.sideband, 6, 59), 60);
	assert_int_equal(sideband_comm_until(f.sideband, 8, 99), UINT64_MAX);
	release(&f);
}

static void names_may_be_told_before_all_else(void **state)
{
	const struct {
		uint64_t count;
		struct {
			uint64_t tid;
			char name[16];
		} threads[3];
	} map = { 3, { { 5, "first" }, { 6, "" }, { 7, "sixteen letters." } } };
	struct fixture f = { 0 };

	perf_build_pt(&f.build, 0, 1);
	perf_build_record(&f.build, PERF_THREAD_MAP, 0, &map, sizeof(map));
	add_comm(&f, 50, 5, 5, "later");
	finish(&f);
	assert_string_equal(sideband_comm(f.sideband, 5, 49), "first");
	assert_string_equal(sideband_comm(f.sideband, 5, 50), "later");
	assert_null(sideband_comm(f.sideband, 6, 49));
	assert_string_equal(sideband_comm(f.sideband, 7, 49), "sixteen letters.");
	release(&f);
}

/* A sample of sched:sched_switch on CPU 1, with the tracepoint's fields. */
static void add_tracepoint(struct fixture *f, uint64_t time, uint32_t next_tid)
{
	struct {
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, none, raw_size;
		uint8_t common[8];
		char prev_comm[16];
		uint32_t prev_tid, prev_prio, prev_state[2];
		char next_comm[16];
		uint32_t next_tid;
	} sample = { .id = 2, .time = time, .cpu = 1, .raw_size = 60, .next_tid = next_tid };

	perf_build_record(&f->build, PERF_SAMPLE, 0, &sample, sizeof(sample));
}

/* Kernels before 4.3 have no switch records; perf says in AUXTRACE_INFO that the samples are for
 * that. */
static void samples_of_a_tracepoint_may_tell_of_switches(void **state)
{
	enum { HEADER = 8, HAVE_SCHED_SWITCH = 8, TRACEPOINT = 2, RAW = 1 << 10 };

	for (uint8_t have = 0; have < 3; have++) {
		const struct switch_entry *entries;
		struct fixture f = { 0 };
		size_t count;

		perf_build_pt(&f.build, 0, 1);
		f.build.bytes[HEADER + 8 * HAVE_SCHED_SWITCH] = have;
		perf_build_event(&f.build, TRACEPOINT, 316, BUILD_SAMPLE_TYPE | RAW, 2, 128);
		add_comm(&f, 0, 5, 6, "thread");
		add_tracepoint(&f, 10, 6);
		add_tracepoint(&f, 20, 0);
		finish(&f);
		entries = sideband_switches(f.sideband, 1, &count);
		assert_int_equal(count, have == 1 ? 2 : 0);
		if (have == 1) {
			expect_switch(&f, 1, 0, 10, 6);
			assert_int_equal(entries[0].pid, 5);
			expect_switch(&f, 1, 1, 20, 0);
			assert_int_equal(entries[1].pid, 0);
		}
		release(&f);
	}
}

static void threads_of_a_guest_are_not_those_of_the_host(void **state)
{
	const uint64_t index[] = { 1, 2, 0, 0, 0, 4711, 0 };
	struct fixture f = { 0 };
	size_t count;

	perf_build_pt(&f.build, 0, 1);
	perf_build_event(&f.build, 1, 9, BUILD_SAMPLE_TYPE, 2, 128);
	perf_build_record(&f.build, PERF_ID_INDEX, 0, index, sizeof(index));
	perf_build_kernel(&f.build, PERF_SWITCH, 0, NULL, 0,
			  (struct build_trailer){ 5, 6, 20, 0, 2 });
	finish(&f);
	assert_null(sideband_switches(f.sideband, 0, &count));
	assert_int_equal(sideband_pid_of(f.sideband, 6), -1);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaving_names_the_next_thread),
		cmocka_unit_test(a_switch_begins_before_it_settles),
		cmocka_unit_test(own_switches_and_itrace_start_count_too),
		cmocka_unit_test(the_last_process_of_a_thread_is_its_process),
		cmocka_unit_test(names_change_and_are_inherited),
		cmocka_unit_test(names_may_be_told_before_all_else),
		cmocka_unit_test(samples_of_a_tracepoint_may_tell_of_switches),
		cmocka_unit_test(threads_of_a_guest_are_not_those_of_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
