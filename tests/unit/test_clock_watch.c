#include "host/record/clock_watch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/record_targets.h"
#include "tests/fake_tree.h"
#include "tests/json_at.h"

enum { PID = 500, OTHER_PID = 600 };

/* A machine with two vCPUs, and another one with one. */
static struct bench {
	struct fake_tree tree;
	struct vcpu_thread vcpus[3];
	struct trace_machine machines[2];
	struct record_targets targets;
	struct clock_watch watch;
	struct recording_json *json;
	json_t *read;
} bench;

static void set_offset(const char *vcpu, const char *text)
{
	fake_tree_file(&bench.tree, text, "debugfs/kvm/%s/tsc-offset", vcpu);
}

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_process(&bench.tree, PID, "qemu", "", 0);
	fake_tree_process(&bench.tree, OTHER_PID, "qemu", "", 0);
	set_offset("500-9/vcpu0", "-1000\n");
	set_offset("500-9/vcpu3", "3\n");
	set_offset("600-9/vcpu0", "60\n");
	bench.vcpus[1].index = 3;
	bench.machines[0].vm.pid = PID;
	bench.machines[0].vcpus.items = &bench.vcpus[0];
	bench.machines[0].vcpus.count = 2;
	bench.machines[1].vm.pid = OTHER_PID;
	bench.machines[1].vcpus.items = &bench.vcpus[2];
	bench.machines[1].vcpus.count = 1;
	bench.targets.machines.items = bench.machines;
	bench.targets.machines.count = 2;
	assert_int_equal(recording_json_new(&bench.tree.roots, "0.1", NULL, &bench.json), 0);
	return 0;
}

static int tear_down(void **state)
{
	clock_watch_free(&bench.watch);
	recording_json_free(bench.json);
	json_decref(bench.read);
	fake_tree_deinit(&bench.tree);
	return 0;
}

static int look(enum json_moment moment)
{
	return clock_watch_look(&bench.watch, &bench.tree.roots, &bench.targets, 77, moment,
				bench.json);
}

/* What data.ptvm.json has. */
static json_t *machines(void)
{
	char path[128];
	int directory = open(bench.tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(recording_json_write(bench.json, directory, NULL), 0);
	assert_int_equal(close(directory), 0);
	(void)snprintf(path, sizeof(path), "%s/data.ptvm.json", bench.tree.path);
	json_decref(bench.read);
	bench.read = json_load_file(path, 0, NULL);
	assert_non_null(bench.read);
	return json_at(bench.read, "machines");
}

static void all_clocks_are_told_at_the_start(void **state)
{
	json_t *json;

	assert_int_equal(look(JSON_AT_START), 3);
	json = machines();
	assert_json_number(json, "0.pid", PID);
	assert_json_number(json, "0.vcpus.0.index", 0);
	assert_json_number(json, "0.vcpus.0.tsc.0.offset", -1000);
	assert_json_number(json, "0.vcpus.0.tsc.0.time_ns", 77);
	assert_json_text(json, "0.vcpus.0.tsc.0.source", "debugfs");
	assert_json_text(json, "0.vcpus.0.tsc.0.when", "start");
	assert_json_number(json, "0.vcpus.1.index", 3);
	assert_json_number(json, "0.vcpus.1.tsc.0.offset", 3);
	assert_json_number(json, "1.pid", OTHER_PID);
	assert_json_number(json, "1.vcpus.0.tsc.0.offset", 60);
}

static void only_what_has_changed_is_told_meanwhile(void **state)
{
	json_t *json;

	assert_int_equal(look(JSON_AT_START), 3);
	assert_int_equal(look(JSON_ON_CHANGE), 0);
	set_offset("600-9/vcpu0", "61\n");
	assert_int_equal(look(JSON_ON_CHANGE), 1);
	assert_int_equal(look(JSON_ON_CHANGE), 0);
	set_offset("600-9/vcpu0", "60\n"); /* as it was */
	assert_int_equal(look(JSON_ON_CHANGE), 1);
	json = machines();
	assert_int_equal(json_array_size(json_at(json, "0.vcpus.0.tsc")), 1);
	assert_int_equal(json_array_size(json_at(json, "1.vcpus.0.tsc")), 3);
	assert_json_number(json, "1.vcpus.0.tsc.1.offset", 61);
	assert_json_text(json, "1.vcpus.0.tsc.1.when", "change");
	assert_json_number(json, "1.vcpus.0.tsc.2.offset", 60);
}

static void another_rate_is_a_change(void **state)
{
	static const char *const files[] = { "tsc-scaling-ratio-frac-bits", "tsc-scaling-ratio" };
	static const char *const values[][2] = { { "48\n", "253327379052953\n" },
						 { "48\n", "253327379052954\n" },
						 { "47\n", "253327379052954\n" } };

	assert_int_equal(look(JSON_AT_START), 3);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (size_t k = 0; k < 2; k++)
			fake_tree_file(&bench.tree, values[i][k], "debugfs/kvm/500-9/vcpu0/%s",
				       files[k]);
		assert_int_equal(look(JSON_ON_CHANGE), 1);
		assert_int_equal(look(JSON_ON_CHANGE), 0);
	}
	assert_json_number(machines(), "0.vcpus.0.tsc.3.frac_bits", 47);
}

static void all_are_told_at_the_end(void **state)
{
	json_t *json;

	assert_int_equal(look(JSON_AT_START), 3);
	assert_int_equal(look(JSON_AT_END), 3);
	json = machines();
	assert_int_equal(json_array_size(json_at(json, "0.vcpus.1.tsc")), 2);
	assert_json_text(json, "0.vcpus.1.tsc.1.when", "end");
}

static void a_vcpu_that_was_plugged_in_is_told(void **state)
{
	bench.machines[0].vcpus.count = 1;
	assert_int_equal(look(JSON_AT_START), 2);
	bench.machines[0].vcpus.count = 2;
	assert_int_equal(look(JSON_ON_CHANGE), 1);
	assert_json_number(machines(), "0.vcpus.1.tsc.0.offset", 3);
}

static void what_debugfs_does_not_show_is_left_out(void **state)
{
	bench.vcpus[0].index = 7;
	assert_int_equal(look(JSON_AT_START), 2);
	bench.machines[1].vm.pid = 4711;
	assert_int_equal(look(JSON_AT_END), 1);
	bench.tree.roots.debugfs = "/nonexistent";
	assert_int_equal(look(JSON_AT_END), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_clocks_are_told_at_the_start),
		TEST(only_what_has_changed_is_told_meanwhile),
		TEST(another_rate_is_a_change),
		TEST(all_are_told_at_the_end),
		TEST(a_vcpu_that_was_plugged_in_is_told),
		TEST(what_debugfs_does_not_show_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
