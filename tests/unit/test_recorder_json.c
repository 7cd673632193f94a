#include "host/record/recorder_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/recorder.h"
#include "host/record/recording_json.h"
#include "tests/fake_tree.h"
#include "tests/json_at.h"

enum { PID = 500, VCPU_TID = 501 };

/* A recorder of one machine with two vCPUs, as it is when the trace is about to begin. */
static struct bench {
	struct fake_tree tree;
	struct recorder recorder;
	struct trace_machine machine;
	struct vcpu_thread vcpus[2];
	struct recorded_kernel kernels[2];
	struct ptvm_error error;
	char path[sizeof(((struct fake_tree *)0)->path) + 32]; /* of the file */
	json_t *read;
} bench;

static void set_offset(const char *text)
{
	fake_tree_file(&bench.tree, text, "debugfs/kvm/%d-9/vcpu1/tsc-offset", PID);
}

static int set_up(void **state)
{
	struct recorder *recorder = &bench.recorder;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_process(&bench.tree, PID, "qemu-system-x86", "", 0);
	set_offset("-1000\n");
	(void)snprintf(bench.path, sizeof(bench.path), "%s/data.ptvm.json", bench.tree.path);
	bench.vcpus[0] = (struct vcpu_thread){ 0, VCPU_TID, VCPU_BY_NAME, 0 };
	bench.vcpus[1] = (struct vcpu_thread){ 1, VCPU_TID + 1, VCPU_BY_DEBUGFS, 0 };
	bench.machine = (struct trace_machine){ .vm = { .pid = PID, .comm = "qemu-system-x86" },
						.name = "vm",
						.uuid = "uuid of vm",
						.versions = { "9.0.0", "7.2.0" } };
	bench.machine.vcpus.items = bench.vcpus;
	bench.machine.vcpus.count = 2;
	bench.kernels[0].copy.json = json_pack("{s:s}", "release", "6.1");
	bench.kernels[1].machine = &bench.machine;
	(void)strcpy(bench.kernels[1].why, "no way to it");
	recorder->roots = &bench.tree.roots;
	recorder->targets.machines.items = &bench.machine;
	recorder->targets.machines.count = 1;
	recorder->plan.pmu.caps[PT_CAP_MTC] = 1;
	recorder->kernels = (struct recording_kernels){ bench.kernels, 2 };
	(void)strcpy(recorder->directory.path, bench.tree.path);
	return 0;
}

static int tear_down(void **state)
{
	recording_json_free(bench.recorder.json);
	clock_watch_free(&bench.recorder.clocks);
	json_decref(bench.kernels[0].copy.json);
	json_decref(bench.read);
	fake_tree_deinit(&bench.tree);
	return 0;
}

static json_t *file(void)
{
	json_decref(bench.read);
	bench.read = json_load_file(bench.path, 0, NULL);
	assert_non_null(bench.read);
	return bench.read;
}

static void begin(void)
{
	assert_int_equal(recorder_json_begin(&bench.recorder, NULL), 0);
}

static void the_beginning_tells_all_that_is_known(void **state)
{
	json_t *json;

	begin();
	json = file();
	assert_non_null(json_string_value(json_at(json, "versions.ptvm")));
	assert_json_number(json, "host.pt_caps.mtc", 1);
	assert_json_text(json, "host.kernel.release", "6.1");
	assert_int_equal(json_array_size(json_at(json, "machines")), 1);
	assert_json_number(json, "machines.0.pid", PID);
	assert_json_text(json, "machines.0.name", "vm");
	assert_json_text(json, "machines.0.uuid", "uuid of vm");
	assert_json_text(json, "machines.0.vmm", "qemu-system-x86");
	assert_json_text(json, "machines.0.vmm_version", "7.2.0");
	assert_json_text(json, "machines.0.libvirt_version", "9.0.0");
	assert_json_text(json, "machines.0.kernel.not_copied", "no way to it");
	assert_int_equal(json_array_size(json_at(json, "machines.0.vcpus")), 2);
	assert_json_number(json, "machines.0.vcpus.0.tid", VCPU_TID);
	assert_json_text(json, "machines.0.vcpus.1.found_by", "debugfs");
	assert_json_number(json, "machines.0.vcpus.1.tsc.0.offset", -1000);
	assert_json_text(json, "machines.0.vcpus.1.tsc.0.when", "start");
	assert_null(json_at(json, "machines.0.vcpus.0.tsc"));
}

static void what_is_not_known_is_not_told(void **state)
{
	json_t *json;

	bench.machine.name[0] = bench.machine.uuid[0] = '\0';
	bench.machine.versions = (struct domain_versions){ "", "" };
	bench.tree.roots.debugfs = "/nonexistent";
	begin();
	json = file();
	assert_null(json_at(json, "machines.0.name"));
	assert_null(json_at(json, "machines.0.uuid"));
	assert_null(json_at(json, "machines.0.vmm_version"));
	assert_null(json_at(json, "machines.0.libvirt_version"));
	assert_json_text(json, "machines.0.vmm", "qemu-system-x86");
	assert_null(json_at(json, "machines.0.vcpus.1.tsc"));
}

static void the_file_is_written_again_only_for_a_change(void **state)
{
	begin();
	assert_int_equal(unlink(bench.path), 0);
	assert_int_equal(recorder_json_look(&bench.recorder, NULL), 0);
	assert_int_equal(access(bench.path, F_OK), -1);
	set_offset("-2000\n");
	assert_int_equal(recorder_json_look(&bench.recorder, NULL), 0);
	assert_json_number(file(), "machines.0.vcpus.1.tsc.1.offset", -2000);
	assert_json_text(file(), "machines.0.vcpus.1.tsc.1.when", "change");
}

static void the_end_has_the_last_clocks_and_all_losses(void **state)
{
	struct thread_loss losses[] = { { .tid = VCPU_TID + 1, .bytes = 4096, .first = 77 },
					{ .tid = 9999, .bytes = 1, .first = 78 } };
	const struct trace_loss loss = { .threads = { losses, 2, 2 } };
	json_t *json;

	begin();
	assert_int_equal(recorder_json_end(&bench.recorder, &loss, NULL), 0);
	json = file();
	assert_json_text(json, "machines.0.vcpus.1.tsc.1.when", "end");
	assert_json_number(json, "machines.0.vcpus.1.lost.bytes", 4096);
	assert_json_number(json, "machines.0.vcpus.1.lost.each.0.time_ns", 77);
	assert_json_number(json, "lost.bytes", 1);
	assert_json_number(json, "lost.each.0.time_ns", 78);
	assert_null(json_at(json, "machines.0.vcpus.0.lost"));
}

static void a_directory_that_is_gone_is_told(void **state)
{
	const struct trace_loss none = { 0 };

	begin();
	(void)strcat(bench.recorder.directory.path, "/none");
	assert_int_equal(recorder_json_look(&bench.recorder, NULL), 0);
	set_offset("7\n");
	assert_int_equal(recorder_json_look(&bench.recorder, &bench.error), -PTVM_SYSTEM);
	assert_int_equal(strncmp(bench.error.message, bench.recorder.directory.path,
				 strlen(bench.recorder.directory.path)),
			 0);
	assert_int_equal(recorder_json_end(&bench.recorder, &none, NULL), -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_beginning_tells_all_that_is_known),
		TEST(what_is_not_known_is_not_told),
		TEST(the_file_is_written_again_only_for_a_change),
		TEST(the_end_has_the_last_clocks_and_all_losses),
		TEST(a_directory_that_is_gone_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
