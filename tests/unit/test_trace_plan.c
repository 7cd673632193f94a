#include "host/record/trace_plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/record/record_options.h"
#include "host/record/record_targets.h"
#include "tests/fake_kernel.h"
#include "tests/fake_tree.h"

#define PMU "sys/bus/event_source/devices/intel_pt/"

enum { CYC = 1 << 1, TSC = 1 << 10 };

struct bench {
	struct fake_tree tree;
	struct fake_kernel kernel;
	struct record_options options;
	struct record_targets targets;
	struct trace_plan plan;
	struct ptvm_error error;
	pid_t tids[2];
	int cpus[2];
};

static struct bench bench;

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_kernel_init(&bench.kernel);
	fake_tree_file(&bench.tree, "8\n", PMU "type");
	fake_tree_file(&bench.tree, "1\n", PMU "caps/psb_cyc");
	fake_tree_file(&bench.tree, "config:1\n", PMU "format/cyc");
	fake_tree_file(&bench.tree, "config:10\n", PMU "format/tsc");
	fake_tree_file(&bench.tree, "Name:\tx\nCapEff:\t000001ffffffffff\n", "proc/self/status");
	bench.targets.tids.items = bench.tids;
	bench.targets.tids.count = 2;
	bench.targets.cpus.items = bench.cpus;
	bench.targets.cpus.count = 2;
	bench.tids[0] = 11;
	return 0;
}

static int tear_down(void **state)
{
	fake_kernel_deinit(&bench.kernel);
	fake_tree_deinit(&bench.tree);
	return 0;
}

static int plan(void)
{
	return trace_plan_make(&bench.tree.roots, &bench.kernel.table, &bench.options,
			       &bench.targets, &bench.plan, &bench.error);
}

static uint64_t record_bytes(void)
{
	return bench.plan.choice.record_pages * FAKE_PAGE_SIZE;
}

static uint64_t aux_bytes(void)
{
	return bench.plan.choice.aux_pages * FAKE_PAGE_SIZE;
}

static void the_kernel_is_traced_with_cycles_by_default(void **state)
{
	const struct tracer_choice *choice = &bench.plan.choice;

	assert_int_equal(plan(), 0);
	assert_string_equal(bench.plan.event_name, "intel_pt/cyc/k");
	assert_int_equal(choice->perf.pt_type, 8);
	assert_int_equal(choice->perf.pt_config & (CYC | TSC), CYC | TSC);
	assert_true(choice->perf.no_user && !choice->perf.no_kernel);
	assert_true(choice->perf.inherit && choice->perf.has_lost);
	assert_int_equal(record_bytes(), 512 << 10);
	assert_int_equal(aux_bytes(), 16 << 20);
	assert_int_equal(choice->perf.aux_watermark, 4 << 20);
	assert_int_equal(choice->tracepoint_count, 0);
	assert_null(choice->filter);
	assert_ptr_equal(choice->tids, &bench.targets.tids);
}

static void without_cycles_where_there_are_none(void **state)
{
	fake_tree_file(&bench.tree, "0\n", PMU "caps/psb_cyc");
	assert_int_equal(plan(), 0);
	assert_string_equal(bench.plan.event_name, "intel_pt//k");
	assert_int_equal(bench.plan.choice.perf.pt_config & CYC, 0);
}

static void options_of_the_trace_are_the_users(void **state)
{
	bench.options.event = "intel_pt/tsc=0/u";
	assert_int_equal(plan(), 0);
	assert_int_equal(bench.plan.choice.perf.pt_config & (CYC | TSC), 0);
	assert_true(bench.plan.choice.perf.no_kernel && !bench.plan.choice.perf.no_user);
	bench.options.event = "intel_pt/nonsense/";
	assert_int_equal(plan(), -PTVM_BAD_USAGE);
}

static void a_machine_that_cannot_trace_is_told(void **state)
{
	fake_tree_file(&bench.tree, "1\n", "sys/module/kvm_intel/parameters/pt_mode");
	assert_int_equal(plan(), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "kvm_intel gives Intel PT to its guests, and none is left for the "
			    "host to see them: load it with pt_mode=0");
	fake_tree_deinit(&bench.tree);
	fake_tree_init(&bench.tree);
	bench.error = (struct ptvm_error){ 0 };
	assert_int_equal(plan(), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "the kernel has no intel_pt PMU: 'ptvm check' says what to do");
}

static void a_cpu_that_stops_tracing_for_guests_traces_none(void **state)
{
	struct trace_machine machine = { .name = "vm" };

	fake_tree_file(&bench.tree, "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 79\n",
		       "proc/cpuinfo");
	assert_int_equal(plan(), 0);
	bench.targets.machines.items = &machine;
	bench.targets.machines.count = 1;
	assert_int_equal(plan(), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message, "Broadwell has no trace while KVM runs a guest: "
						 "record on a later CPU");
	machine.vcpus.is_emulated = true;
	assert_int_equal(plan(), 0);
}

static void sizes_are_powers_of_two_of_pages(void **state)
{
	bench.options.record_size = 1;
	bench.options.aux_size = 3 * FAKE_PAGE_SIZE;
	assert_int_equal(plan(), 0);
	assert_int_equal(record_bytes(), FAKE_PAGE_SIZE);
	assert_int_equal(aux_bytes(), 4 * FAKE_PAGE_SIZE);
	bench.options.aux_size = 1;
	assert_int_equal(plan(), 0);
	assert_int_equal(aux_bytes(), 2 * FAKE_PAGE_SIZE);
	bench.options.aux_size = UINT64_MAX;
	assert_int_equal(plan(), 0);
	assert_true(bench.plan.choice.aux_pages <= UINT64_MAX / FAKE_PAGE_SIZE);
}

static void snapshots_have_rings_of_their_size(void **state)
{
	bench.options.is_snapshot = true;
	assert_int_equal(plan(), 0);
	assert_int_equal(aux_bytes(), 4 << 20);
	assert_int_equal(bench.plan.snapshot_size, 4 << 20);
	assert_int_equal(bench.plan.choice.perf.aux_watermark, 0);
	bench.options.aux_size = 1;
	assert_int_equal(plan(), 0);
	assert_int_equal(aux_bytes(), FAKE_PAGE_SIZE);
	bench.options.aux_size = 0;
	bench.options.snapshot_size = 5000;
	assert_int_equal(plan(), 0);
	assert_int_equal(aux_bytes(), 8192);
	assert_int_equal(bench.plan.snapshot_size, 5000);
}

static void who_may_lock_little_gets_little(void **state)
{
	fake_tree_file(&bench.tree, "Name:\tx\nCapEff:\t0\n", "proc/self/status");
	fake_tree_file(&bench.tree, "2\n", "proc/sys/kernel/perf_event_paranoid");
	assert_int_equal(plan(), 0);
	assert_int_equal(record_bytes() + aux_bytes(), 256 << 10);
	fake_tree_file(&bench.tree, "-1\n", "proc/sys/kernel/perf_event_paranoid");
	assert_int_equal(plan(), 0);
	assert_int_equal(aux_bytes(), 16 << 20);
}

static void filters_need_a_cpu_that_has_them(void **state)
{
	bench.options.filter = "filter 0x10/0x20";
	assert_int_equal(plan(), -PTVM_BAD_USAGE);
	assert_string_equal(bench.error.message, "--filter: this CPU has no address filters");
	fake_tree_file(&bench.tree, "2\n", PMU "caps/num_address_ranges");
	assert_int_equal(plan(), 0);
	assert_string_equal(bench.plan.choice.filter, "filter 0x10/0x20");
}

static void tracepoints_need_tracefs(void **state)
{
	static const char *const names[] = { "kvm_entry", "kvm_exit", "kvm_write_tsc_offset" };

	bench.options.has_kvm_events = true;
	assert_int_equal(plan(), -PTVM_NOT_FOUND);
	for (int i = 0; i < 3; i++)
		fake_tree_file(&bench.tree, "7\n", "sys/kernel/tracing/events/kvm/%s/id", names[i]);
	assert_int_equal(plan(), 0);
	assert_int_equal(bench.plan.choice.tracepoint_count, 3);
	assert_int_equal(bench.plan.choice.tracepoints[2], 7);
}

static void heirs_are_traced_where_there_can_be_any(void **state)
{
	bench.options.is_per_thread = true;
	assert_int_equal(plan(), 0);
	assert_false(bench.plan.choice.perf.inherit);
	bench.options.is_per_thread = false;
	bench.tids[0] = -1;
	assert_int_equal(plan(), 0);
	assert_false(bench.plan.choice.perf.inherit);
}

static void an_older_kernel_does_not_count_losses(void **state)
{
	bench.kernel.open_errno = EINVAL;
	assert_int_equal(plan(), 0);
	assert_false(bench.plan.choice.perf.has_lost);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_kernel_is_traced_with_cycles_by_default),
		TEST(without_cycles_where_there_are_none),
		TEST(options_of_the_trace_are_the_users),
		TEST(a_machine_that_cannot_trace_is_told),
		TEST(a_cpu_that_stops_tracing_for_guests_traces_none),
		TEST(sizes_are_powers_of_two_of_pages),
		TEST(snapshots_have_rings_of_their_size),
		TEST(who_may_lock_little_gets_little),
		TEST(filters_need_a_cpu_that_has_them),
		TEST(tracepoints_need_tracefs),
		TEST(heirs_are_traced_where_there_can_be_any),
		TEST(an_older_kernel_does_not_count_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
