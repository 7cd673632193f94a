#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "correlate/offset_recorded.h"
#include "host/record/recording_json.h"
#include "tests/fake_tree.h"
#include "tests/json_at.h"

enum { VM = 500 };

struct bench {
	struct fake_tree tree;
	struct recording_json *json;
	json_t *read;
	int directory;
	char path[128];
};

static int set_up(void **state)
{
	static struct bench bench;
	static const struct pt_pmu pmu = { .caps = { [PT_CAP_MTC] = 1 },
					   .tsc_ratio = 294,
					   .crystal_ratio = 2 };

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree, "vendor_id\t: GenuineIntel\nmodel name\t: A CPU\nmodel\t: 85\n",
		       "proc/cpuinfo");
	fake_tree_file(&bench.tree, "0\n", "sys/module/kvm_intel/parameters/pt_mode");
	(void)snprintf(bench.path, sizeof(bench.path), "%s/data.ptvm.json", bench.tree.path);
	bench.directory = open(bench.tree.path, O_RDONLY | O_DIRECTORY);
	assert_true(bench.directory >= 0);
	assert_int_equal(recording_json_new(&bench.tree.roots, "0.1", &pmu, &bench.json), 0);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	json_decref(bench->read);
	recording_json_free(bench->json);
	(void)close(bench->directory);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static json_t *write_and_read(struct bench *bench)
{
	assert_int_equal(recording_json_write(bench->json, bench->directory, NULL), 0);
	json_decref(bench->read);
	bench->read = json_load_file(bench->path, 0, NULL);
	assert_non_null(bench->read);
	return bench->read;
}

static void the_host_is_described(void **state)
{
	json_t *json = write_and_read(*state);

	assert_json_number(json, "version", 1);
	assert_json_text(json, "versions.ptvm", "0.1");
	assert_json_text(json, "host.cpu.name", "A CPU");
	assert_json_number(json, "host.cpu.model", 85);
	assert_json_number(json, "host.pt_mode", 0);
	assert_json_number(json, "host.pt_caps.mtc", 1);
	assert_json_number(json, "host.pt_caps.psb_cyc", 0);
	assert_json_number(json, "host.tsc_to_crystal.0", 294);
	assert_int_equal(json_array_size(json_at(json, "machines")), 0);
}

static void what_is_said_twice_is_one_entry(void **state)
{
	const struct vcpu_thread vcpu = { 0, 501, VCPU_BY_DEBUGFS | VCPU_BY_NAME, 0 };
	const struct vcpu_thread moved = { 0, 503, VCPU_BY_NAME, VCPU_BY_IOCTL };
	const struct vcpu_thread plugged = { 1, 502, VCPU_BY_DEBUGFS, 0 };
	const struct json_machine first = { .pid = VM, .vmm = "qemu-system-x86" };
	const struct json_machine more = { .pid = VM, .name = "vm\xff", .uuid = "u" };
	struct bench *bench = *state;
	json_t *json;

	assert_int_equal(recording_json_vcpu(bench->json, VM, &vcpu), 0);
	assert_int_equal(recording_json_machine(bench->json, &first), 0);
	assert_int_equal(recording_json_machine(bench->json, &more), 0);
	json = write_and_read(bench);
	assert_json_text(json, "machines.0.vcpus.0.found_by", "debugfs, name");
	assert_int_equal(recording_json_vcpu(bench->json, VM, &plugged), 0);
	assert_int_equal(recording_json_vcpu(bench->json, VM, &moved), 0);
	json = write_and_read(bench);
	assert_int_equal(json_array_size(json_at(json, "machines")), 1);
	assert_int_equal(json_array_size(json_at(json, "machines.0.vcpus")), 2);
	assert_json_number(json, "machines.0.pid", VM);
	assert_json_text(json, "machines.0.name", "vm?");
	assert_json_text(json, "machines.0.uuid", "u");
	assert_json_text(json, "machines.0.vmm", "qemu-system-x86");
	assert_json_number(json, "machines.0.vcpus.0.tid", 503);
	assert_json_text(json, "machines.0.vcpus.0.against", "ioctl");
	assert_json_number(json, "machines.0.vcpus.1.tid", 502);
}

static void correlate_reads_the_clocks(void **state)
{
	const struct vcpu_thread vcpu = { 3, 501, VCPU_BY_DEBUGFS, 0 };
	const struct json_clock samples[] = {
		{ 1000, JSON_AT_START, "debugfs", { -5, (uint64_t)1 << 48, 48 } },
		{ 0, JSON_AT_END, "debugfs", { INT64_MIN, (uint64_t)1 << 49, 48 } },
	};
	struct bench *bench = *state;
	struct offsets_recorded recorded = { 0 };
	const struct offset_recorded *found;
	json_t *json;

	assert_int_equal(recording_json_vcpu(bench->json, VM, &vcpu), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(recording_json_clock(bench->json, VM, 3, &samples[i]), 0);
	json = write_and_read(bench);
	assert_json_text(json, "machines.0.vcpus.0.tsc.0.when", "start");
	assert_json_text(json, "machines.0.vcpus.0.tsc.1.source", "debugfs");
	assert_null(json_at(json, "machines.0.vcpus.0.tsc.1.time_ns"));
	assert_int_equal(offsets_recorded_load(bench->path, &recorded, NULL), 0);
	assert_int_equal(recorded.entries.count, 3);
	found = &recorded.entries.items[1];
	assert_int_equal(found->pid, VM);
	assert_int_equal(found->tid, 501);
	assert_int_equal(found->vcpu, 3);
	assert_int_equal(found->time_ns, 1000);
	assert_true(found->have_offset);
	assert_int_equal(found->offset, (uint64_t)-5 << 8 >> 8);
	assert_int_equal(found[1].ratio, found->ratio * 2);
	offsets_recorded_free(&recorded);
}

static void clocks_that_never_rest_are_cut_short_but_for_the_end(void **state)
{
	struct json_clock sample = { 1, JSON_ON_CHANGE, "debugfs", { 0, 1, 0 } };
	struct bench *bench = *state;
	json_t *json;

	for (int i = 0; i < RECORDING_JSON_SAMPLES + 10; i++)
		assert_int_equal(recording_json_clock(bench->json, VM, 0, &sample), 0);
	sample.moment = JSON_AT_END;
	assert_int_equal(recording_json_clock(bench->json, VM, 0, &sample), 0);
	json = json_at(write_and_read(bench), "machines.0.vcpus.0.tsc");
	assert_int_equal(json_array_size(json), RECORDING_JSON_SAMPLES + 1);
	assert_json_text(json_array_get(json, RECORDING_JSON_SAMPLES), "when", "end");
}

static void losses_are_summed_up(void **state)
{
	const struct json_loss loss = { 7, 100 };
	struct bench *bench = *state;
	json_t *json;

	for (int i = 0; i < RECORDING_JSON_LOSSES + 10; i++)
		assert_int_equal(recording_json_loss(bench->json, VM, 2, &loss), 0);
	assert_int_equal(recording_json_loss(bench->json, 0, 0, &loss), 0);
	json = write_and_read(bench);
	assert_json_number(json, "machines.0.vcpus.0.index", 2);
	assert_json_number(json, "machines.0.vcpus.0.lost.times", RECORDING_JSON_LOSSES + 10);
	assert_json_number(json, "machines.0.vcpus.0.lost.bytes",
			   100 * (RECORDING_JSON_LOSSES + 10));
	assert_int_equal(json_array_size(json_at(json, "machines.0.vcpus.0.lost.each")),
			 RECORDING_JSON_LOSSES);
	assert_json_number(json, "lost.times", 1);
	assert_json_number(json, "lost.each.0.time_ns", 7);
}

static void a_kernel_that_was_not_copied_says_why(void **state)
{
	struct bench *bench = *state;
	json_t *json;

	assert_int_equal(recording_json_kernel(bench->json, 0, NULL, "no /proc/kcore"), 0);
	assert_int_equal(recording_json_kernel(bench->json, VM, NULL, "no agent"), 0);
	json = write_and_read(bench);
	assert_json_text(json, "host.kernel.not_copied", "no /proc/kcore");
	assert_json_text(json, "machines.0.kernel.not_copied", "no agent");
}

static void the_file_is_private_and_nothing_else_is_written(void **state)
{
	struct bench *bench = *state;
	struct stat status;
	char target[128];

	(void)snprintf(target, sizeof(target), "%s/elsewhere", bench->tree.path);
	fake_tree_link(&bench->tree, target, "data.ptvm.json");
	fake_tree_link(&bench->tree, target, "data.ptvm.json.new");
	(void)write_and_read(bench);
	assert_int_equal(lstat(bench->path, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_not_equal(access(target, F_OK), 0);
	(void)snprintf(target, sizeof(target), "%s/data.ptvm.json.new", bench->tree.path);
	assert_int_not_equal(lstat(target, &status), 0);
}

static void what_was_there_stays_where_writing_fails(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	(void)write_and_read(bench);
	fake_tree_file(&bench->tree, "", "data.ptvm.json.new/in the way");
	assert_int_equal(recording_json_write(bench->json, bench->directory, &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "data.ptvm.json.new: "));
	assert_int_equal(access(bench->path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_host_is_described),
		TEST(what_is_said_twice_is_one_entry),
		TEST(correlate_reads_the_clocks),
		TEST(clocks_that_never_rest_are_cut_short_but_for_the_end),
		TEST(losses_are_summed_up),
		TEST(a_kernel_that_was_not_copied_says_why),
		TEST(the_file_is_private_and_nothing_else_is_written),
		TEST(what_was_there_stays_where_writing_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
