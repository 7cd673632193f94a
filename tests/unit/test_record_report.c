#include "host/record/record_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/record/pause_watch.h"
#include "host/record/record_options.h"
#include "host/record/recorder.h"

/* A recording of two vCPUs, with 1.5 MB. */
struct bench {
	struct recorder recorder;
	struct record_options options;
	struct trace_machine machines[2];
	struct vcpu_thread vcpus[2];
	struct tracer_ring ring;
	pid_t tids[2];
	struct thread_loss losses[3];
	struct trace_loss loss;
	struct pause_watch *pauses;
	char *text;
};

static struct bench bench;

static int set_up(void **state)
{
	struct recorder *recorder = &bench.recorder;

	memset(&bench, 0, sizeof(bench));
	bench.vcpus[0] = (struct vcpu_thread){ .index = 0, .tid = 11 };
	bench.vcpus[1] = (struct vcpu_thread){ .index = 1, .tid = 12 };
	for (int i = 0; i < 2; i++) {
		bench.machines[i].vcpus.items = bench.vcpus;
		bench.machines[i].vcpus.count = 2;
		bench.machines[i].vm.pid = 10;
	}
	(void)strcpy(bench.machines[0].name, "vm");
	recorder->targets.machines.items = bench.machines;
	recorder->targets.machines.count = 1;
	recorder->targets.tids.items = bench.tids;
	recorder->targets.tids.count = 2;
	recorder->tracer.rings.items = &bench.ring;
	recorder->tracer.rings.count = 1;
	recorder->out.end = 1500000;
	recorder->options = &bench.options;
	(void)strcpy(recorder->directory.path, "rec");
	bench.ring.written = 100;
	bench.tids[0] = 11;
	bench.tids[1] = 12;
	bench.loss.threads.items = bench.losses;
	return 0;
}

static int tear_down(void **state)
{
	free(bench.text);
	return 0;
}

static const char *report(bool is_full)
{
	size_t size;
	FILE *out;

	free(bench.text);
	bench.text = NULL;
	out = open_memstream(&bench.text, &size);
	assert_non_null(out);
	record_report_print(&bench.recorder, bench.pauses, &bench.loss, is_full, out);
	assert_int_equal(fclose(out), 0);
	return bench.text;
}

static void one_line_says_what_was_made(void **state)
{
	assert_string_equal(report(false), "ptvm record: 1.500 MB in rec, 2 vCPUs of vm\n");
	assert_string_equal(report(true),
			    "ptvm record: 1.500 MB in rec, 2 vCPUs of vm, ended at --max-size\n");
	bench.options.is_snapshot = true;
	bench.recorder.snapshots = 3;
	assert_string_equal(report(false),
			    "ptvm record: 1.500 MB in rec, 2 vCPUs of vm, 3 snapshots\n");
}

static void guests_without_a_name_are_processes(void **state)
{
	bench.recorder.targets.machines.count = 2;
	bench.machines[1].vcpus.count = 1;
	assert_string_equal(report(false), "ptvm record: 1.500 MB in rec, 2 vCPUs of vm, 1 vCPU of "
					   "process 10\n");
}

static void without_guests_threads_or_cpus_are_counted(void **state)
{
	bench.recorder.targets.machines.count = 0;
	assert_string_equal(report(false), "ptvm record: 1.500 MB in rec, 2 threads\n");
	bench.tids[0] = -1;
	bench.recorder.targets.cpus.count = 4;
	assert_string_equal(report(false), "ptvm record: 1.500 MB in rec, 4 CPUs\n");
	bench.recorder.targets.cpus.count = 1;
	assert_string_equal(report(false), "ptvm record: 1.500 MB in rec, 1 CPU\n");
}

static void a_recording_without_trace_is_told(void **state)
{
	bench.ring.written = 0;
	assert_non_null(strstr(report(false), "\nptvm record: no trace was written: "));
	bench.recorder.options = &(struct record_options){ .aux_sample_size = 4096 };
	assert_non_null(strstr(report(false), "\nptvm record: no trace was written: "));
	bench.loss.samples = 1;
	assert_null(strstr(report(false), "no trace"));
}

static void a_domain_that_is_paused_is_why(void **state)
{
	struct watched_domain domain = { "vm", "1", "paused", NULL, 0 };
	struct pause_watch pauses = { .lock = PTHREAD_MUTEX_INITIALIZER,
				      .domains = { &domain, 1, 1 } };

	bench.pauses = &pauses;
	(void)strcpy(bench.machines[0].uuid, "1");
	assert_non_null(strstr(report(false), "\nptvm record: the trace ends early: domain 'vm' is "
					      "paused: virsh resume vm\n"));
	bench.ring.written = 0;
	assert_non_null(strstr(report(false), "\nptvm record: no trace was written: domain 'vm' is "
					      "paused: virsh resume vm\n"));
	domain.still = "shut off";
	assert_non_null(strstr(report(false), "domain 'vm' is shut off\n"));
	(void)strcpy(bench.machines[0].uuid, "2");
	assert_null(strstr(report(false), "domain"));
}

static void losses_are_told_by_vcpu(void **state)
{
	bench.loss.threads.count = 2;
	bench.losses[0] = (struct thread_loss){
		.tid = 12, .stops = 2, .bytes = 30, .ns = 1500000, .first = 26000000001
	};
	bench.losses[1] = (struct thread_loss){
		.tid = 11, .partials = 4, .records = 5, .first = 27000000000
	};
	assert_non_null(strstr(report(false),
			       "\nptvm record: lost: vCPU 1 from 26.000000001 s: 2 stops, 1.500 ms "
			       "at most, 30 bytes of trace, vCPU 0 from 27.000000000 s: 4 gaps, 5 "
			       "records, use larger buffers"));
}

static void those_of_other_threads_are_one(void **state)
{
	bench.loss.threads.count = 2;
	bench.losses[0] = (struct thread_loss){
		.tid = 0, .records = 5, .first = 3000000000, .last = 3000000000
	};
	bench.losses[1] = (struct thread_loss){
		.tid = 99, .records = 6, .first = 2000000000, .last = 4000000000
	};
	assert_non_null(strstr(report(false),
			       "\nptvm record: lost: others from 2.000000000 s: 11 records, use"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_line_says_what_was_made),
		TEST(guests_without_a_name_are_processes),
		TEST(without_guests_threads_or_cpus_are_counted),
		TEST(a_recording_without_trace_is_told),
		TEST(a_domain_that_is_paused_is_why),
		TEST(losses_are_told_by_vcpu),
		TEST(those_of_other_threads_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
