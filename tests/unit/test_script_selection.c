/* script_selection: the explanation when nothing was printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/script.h"

enum { MOST = 20 };

/* A recording of threads that ran on CPUs, one record each. */
struct bench {
	struct script script;
	struct perf_record records[MOST];
	struct aux_queue queues[2];
};

static struct bench *bench_new(void)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));

	bench->script.data.records.items = bench->records;
	bench->script.data.queues.items = bench->queues;
	assert_int_equal(sideband_build(&bench->script.data, &bench->script.sideband), 0);
	return bench;
}

static void ran(struct bench *bench, int32_t pid, int32_t tid, int32_t cpu, uint64_t time_ns)
{
	struct perf_record *record = &bench->records[bench->script.data.records.count++];

	*record = (struct perf_record){
		.type = PERF_AUX, .pid = pid, .tid = tid, .cpu = cpu, .time = time_ns
	};
}

static void says(struct bench *bench, bool left_out, const char *expected)
{
	struct text text = { 0 };

	script_explain_nothing(&bench->script, left_out, &text);
	text_putc(&text, 0);
	assert_string_equal(text.data, expected);
	text_free(&text);
	sideband_free(bench->script.sideband);
	test_free(bench);
}

static void select_tids(struct bench *bench, const char *given, int64_t from, int64_t to)
{
	bench->script.args.tids = given;
	bench->script.print.tids = (struct number_ranges){ .items = { { from, to } }, .count = 1 };
}

static void threads_that_ran_are_named_once(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 10);
	ran(bench, 6, 8, 0, 20);
	ran(bench, 6, 7, 0, 30);
	select_tids(bench, "1-5", 1, 5);
	says(bench, false, "nothing matches --tid 1-5: there are 7 (no name), 8 (no name)");
}

static void of_many_a_few_are_named(void **state)
{
	struct bench *bench = bench_new();

	for (int32_t pid = 10; pid < 20; pid++)
		ran(bench, pid, pid, 0, 10);
	bench->script.args.pids = "9";
	bench->script.print.pids = (struct number_ranges){ .items = { { 9, 9 } }, .count = 1 };
	says(bench, true,
	     "nothing matches --pid 9: there are 10, 11, 12, 13, 14, 15, 16, 17 and others");
}

static void without_times_traces_tell_whose_they_are(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 1, 1, 0, 0);
	bench->queues[0] = (struct aux_queue){ .cpu = -1, .pid = 6, .tid = 7 };
	bench->script.data.queues.count = 1;
	select_tids(bench, "1", 1, 1);
	says(bench, false, "nothing matches --tid 1: there are 7 (no name)");
}

static void select_cpus(struct bench *bench, const char *given, int64_t cpu)
{
	bench->script.args.cpus = given;
	bench->script.print.cpus = (struct number_ranges){ .items = { { cpu, cpu } }, .count = 1 };
}

/* Of two records and a trace; of what was made before there were CPUs, and of threads, there is
 * none. */
static struct bench *bench_of_cpus(void)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 10);
	ran(bench, 6, 7, 5, 0);
	ran(bench, 6, 7, -1, 10);
	ran(bench, 6, 7, 2, 20);
	bench->queues[0] = (struct aux_queue){ .cpu = 3, .pid = -1, .tid = -1 };
	bench->queues[1] = (struct aux_queue){ .cpu = -1, .pid = 6, .tid = 7 };
	bench->script.data.queues.count = 2;
	return bench;
}

static void cpus_are_those_of_records_and_traces(void **state)
{
	static const int64_t there[] = { 0, 2, 3 };
	struct bench *bench = bench_of_cpus();

	select_cpus(bench, "5", 5);
	says(bench, false, "nothing matches -C 5: there are 0, 2, 3");
	for (size_t i = 0; i < sizeof(there) / sizeof(*there); i++) {
		bench = bench_of_cpus();
		select_cpus(bench, "n", there[i]);
		says(bench, false, "");
	}
}

static void a_time_within_the_trace_is_not_to_blame(void **state)
{
	static const struct {
		struct time_range ranges[2];
		bool is_outside;
	} cases[] = {
		{ { { 0, 999999999 }, { 2000000001, UINT64_MAX } }, true },
		{ { { 0, 1000000000 }, { 2000000001, UINT64_MAX } }, false },
		{ { { 0, 999999999 }, { 2000000000, UINT64_MAX } }, false },
		{ { { 1500000000, 1500000001 }, { 3000000000, UINT64_MAX } }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bench *bench = bench_new();

		ran(bench, 6, 7, 0, 1000000000);
		ran(bench, 6, 7, 0, 2000000000);
		bench->script.args.times = "t";
		bench->script.print.times.count = 2;
		memcpy(bench->script.print.times.items, cases[i].ranges, sizeof(cases[i].ranges));
		says(bench, false,
		     cases[i].is_outside ? "nothing matches --time t: the recording is from "
					   "1.000000000 to 2.000000000"
					 : "");
	}
}

static void times_are_those_of_the_trace(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 1500000000);
	ran(bench, 6, 7, 0, 2000000001);
	bench->script.args.times = "3,";
	bench->script.print.times =
		(struct time_ranges){ .items = { { 3000000000, UINT64_MAX } }, .count = 1 };
	says(bench, false,
	     "nothing matches --time 3,: the recording is from 1.500000000 to 2.000000001");
}

static void a_trace_without_times_says_so(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 1500000000);
	bench->script.args.times = "1,";
	bench->script.print.timeless = true;
	bench->script.print.times =
		(struct time_ranges){ .items = { { 1000000000, UINT64_MAX } }, .count = 1 };
	says(bench, false, "nothing matches --time 1,: the trace has no times");
}

static void what_is_there_alone_is_told_together(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 10);
	select_tids(bench, "7", 7, 7);
	bench->script.args.vmcs = "1";
	bench->script.args.host_only = true;
	says(bench, true,
	     "nothing matches --tid 7 --vmcs 1 --host-only (-F vmcs prints which there are)");
}

static void where_nothing_was_left_out_the_options_are_not_to_blame(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 10);
	select_tids(bench, "7", 7, 7);
	says(bench, false, "");
	says(bench_new(), false, "");
}

static void a_trace_that_is_not_wanted_is_all_there_is(void **state)
{
	struct bench *bench = bench_new();

	bench->script.args.no_itrace = true;
	says(bench, false, "");
	bench = bench_new();
	bench->script.args.no_itrace = bench->script.data.have_pt = true;
	says(bench, false, "--no-itrace leaves the trace out, and there is nothing else");
}

static void there_may_be_none(void **state)
{
	struct bench *bench = bench_new();

	ran(bench, 6, 7, 0, 10);
	bench->script.args.vcpus = "0";
	bench->script.print.vcpus = (struct number_ranges){ .items = { { 0, 0 } }, .count = 1 };
	says(bench, false, "nothing matches --vcpu 0: there are none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_ran_are_named_once),
		cmocka_unit_test(of_many_a_few_are_named),
		cmocka_unit_test(without_times_traces_tell_whose_they_are),
		cmocka_unit_test(cpus_are_those_of_records_and_traces),
		cmocka_unit_test(a_time_within_the_trace_is_not_to_blame),
		cmocka_unit_test(times_are_those_of_the_trace),
		cmocka_unit_test(a_trace_without_times_says_so),
		cmocka_unit_test(what_is_there_alone_is_told_together),
		cmocka_unit_test(where_nothing_was_left_out_the_options_are_not_to_blame),
		cmocka_unit_test(a_trace_that_is_not_wanted_is_all_there_is),
		cmocka_unit_test(there_may_be_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
