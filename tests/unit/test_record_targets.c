#include "host/record/record_targets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/record_options.h"
#include "tests/command_line.h"
#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	struct record_options options;
	struct record_targets targets;
	struct ptvm_error error;
};

static struct bench bench;

#define QEMU(pid, name)                                                                            \
	fake_tree_process(&bench.tree, pid, "qemu-system-x86", "qemu\0-enable-kvm\0-name\0" name,  \
			  sizeof("qemu\0-enable-kvm\0-name\0" name))

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree, "0-1,4\n", "sys/devices/system/cpu/online");
	QEMU(100, "one");
	fake_tree_thread(&bench.tree, 100, 101, "CPU 0/KVM");
	fake_tree_thread(&bench.tree, 100, 102, "CPU 1/KVM");
	QEMU(200, "two");
	fake_tree_thread(&bench.tree, 200, 201, "CPU 0/KVM");
	fake_tree_process(&bench.tree, 300, "sleep", "sleep", 6);
	return 0;
}

static int tear_down(void **state)
{
	record_targets_free(&bench.targets);
	record_options_free(&bench.options);
	fake_tree_deinit(&bench.tree);
	return 0;
}

/* By a command line, which ends with NULL. */
static int find(const char *const *words)
{
	static struct command_line line;

	command_line_make(&line, words);
	record_targets_free(&bench.targets);
	record_options_free(&bench.options);
	bench.targets = (struct record_targets){ .tids.count = 0 };
	bench.error = (struct ptvm_error){ 0 };
	assert_int_equal(record_options_parse(line.argc, line.argv, &bench.options, NULL), 0);
	return record_targets_find(&bench.tree.roots, &bench.options, &bench.targets, &bench.error);
}

#define FIND(...) find((const char *const[]){ "record", __VA_ARGS__, NULL })

static void assert_tids(size_t count, const pid_t *tids)
{
	assert_int_equal(bench.targets.tids.count, count);
	assert_memory_equal(bench.targets.tids.items, tids, count * sizeof(*tids));
}

static void guests_are_found_by_process_and_name(void **state)
{
	assert_int_equal(FIND("-p", "100"), 0);
	assert_tids(2, (const pid_t[]){ 101, 102 });
	assert_string_equal(bench.targets.machines.items[0].name, "one");
	assert_int_equal(FIND("--domain", "two", "-c", "nowhere:///", "-p", "100", "-t", "7"), 0);
	assert_tids(4, (const pid_t[]){ 201, 101, 102, 7 });
	assert_int_equal(bench.targets.machines.count, 2);
}

static void vcpus_can_be_chosen(void **state)
{
	assert_int_equal(FIND("-p", "100", "--vcpu", "1"), 0);
	assert_tids(1, (const pid_t[]){ 102 });
	assert_int_equal(FIND("-p", "100", "--vcpu", "1-2"), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "machine 'one' has 2 vCPUs that are known, not all "
			    "of those wanted");
}

static void what_runs_no_machine_is_told(void **state)
{
	assert_int_equal(FIND("-p", "300"), -PTVM_BAD_INPUT);
	assert_string_equal(bench.error.message,
			    "process 300 runs no virtual machine: name its threads with -t");
	assert_int_equal(FIND("-p", "301"), -PTVM_NOT_FOUND);
	assert_int_equal(FIND("--domain", "three", "-c", "nowhere:///"), -PTVM_NOT_FOUND);
	QEMU(400, "four");
	assert_int_equal(FIND("-p", "400"), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "no vCPU threads of process 400 are known: run as root with debugfs "
			    "mounted, or name threads (-t)");
}

static void whole_cpus_are_one_thread_that_is_any(void **state)
{
	assert_int_equal(FIND("-C", "1,4-5"), 0);
	assert_tids(1, (const pid_t[]){ -1 });
	assert_int_equal(bench.targets.cpus.count, 2);
	assert_int_equal(bench.targets.cpus.items[1], 4);
	assert_int_equal(bench.targets.other_cpus.count, 1);
	assert_int_equal(bench.targets.other_cpus.items[0], 0);
	assert_int_equal(FIND("-a", "-p", "100"), 0);
	assert_tids(1, (const pid_t[]){ -1 });
	assert_int_equal(bench.targets.machines.count, 1);
	assert_int_equal(bench.targets.cpus.count, 3);
	assert_int_equal(bench.targets.other_cpus.count, 0);
}

static void what_is_named_twice_is_traced_once(void **state)
{
	assert_int_equal(FIND("-p", "100,200,100", "-t", "201,300,300"), 0);
	assert_tids(4, (const pid_t[]){ 101, 102, 201, 300 });
	assert_int_equal(bench.targets.machines.count, 2);
}

static void cpus_must_be_online(void **state)
{
	assert_int_equal(FIND("-C", "2-3"), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message, "-C: none of these CPUs is online (0-1,4 are)");
	fake_tree_file(&bench.tree, "none\n", "sys/devices/system/cpu/online");
	assert_int_equal(FIND("-a"), -PTVM_NOT_FOUND);
}

static int late_cpu(void)
{
	return record_targets_late_cpu(&bench.tree.roots, &bench.options, &bench.targets);
}

static void cpus_that_come_online_are_told_of_once(void **state)
{
	assert_int_equal(FIND("-p", "100"), 0);
	assert_int_equal(late_cpu(), -1);
	fake_tree_file(&bench.tree, "0-2,4-5\n", "sys/devices/system/cpu/online");
	assert_int_equal(late_cpu(), 2);
	assert_int_equal(late_cpu(), 5);
	assert_int_equal(late_cpu(), -1);
	fake_tree_file(&bench.tree, "0\n", "sys/devices/system/cpu/online");
	assert_int_equal(late_cpu(), -1);
	fake_tree_file(&bench.tree, "what?\n", "sys/devices/system/cpu/online");
	assert_int_equal(late_cpu(), -1);
}

static void those_that_are_not_to_be_traced_are_not(void **state)
{
	assert_int_equal(FIND("-C", "0-2"), 0);
	fake_tree_file(&bench.tree, "0-5\n", "sys/devices/system/cpu/online");
	assert_int_equal(late_cpu(), 2);
	assert_int_equal(late_cpu(), -1);
}

static int back_cpu(void)
{
	return record_targets_back_cpu(&bench.tree.roots, &bench.targets);
}

static void cpus_that_were_offline_are_told_of_each_time(void **state)
{
	assert_int_equal(FIND("-C", "0-2"), 0);
	assert_int_equal(back_cpu(), -1);
	for (int i = 0; i < 2; i++) {
		fake_tree_file(&bench.tree, "4\n", "sys/devices/system/cpu/online");
		assert_int_equal(back_cpu(), -1);
		assert_int_equal(back_cpu(), -1);
		fake_tree_file(&bench.tree, "1,4\n", "sys/devices/system/cpu/online");
		assert_int_equal(back_cpu(), 1);
		assert_int_equal(back_cpu(), -1);
		fake_tree_file(&bench.tree, "0-2\n", "sys/devices/system/cpu/online");
		assert_int_equal(back_cpu(), 0);
		assert_int_equal(back_cpu(), -1);
		assert_int_equal(late_cpu(), i ? -1 : 2);
	}
	fake_tree_file(&bench.tree, "what?\n", "sys/devices/system/cpu/online");
	assert_int_equal(back_cpu(), -1);
}

static int refresh(struct record_vcpu *ret)
{
	return record_targets_refresh(&bench.tree.roots, &bench.options, &bench.targets, ret);
}

static void vcpus_that_are_new_are_found_once(void **state)
{
	struct record_vcpu new;

	assert_int_equal(FIND("-p", "100,200", "--vcpu", "0-1"), -PTVM_NOT_FOUND);
	assert_int_equal(FIND("-p", "200,100"), 0);
	assert_int_equal(refresh(&new), 0);
	fake_tree_thread(&bench.tree, 100, 103, "CPU 2/KVM");
	fake_tree_thread(&bench.tree, 200, 202, "CPU 1/KVM");
	assert_int_equal(refresh(&new), 1);
	assert_int_equal(new.vcpu.tid, 202);
	assert_int_equal(new.machine->vm.pid, 200);
	assert_int_equal(refresh(&new), 1);
	assert_int_equal(new.vcpu.tid, 103);
	assert_int_equal(new.vcpu.index, 2);
	assert_int_equal(refresh(&new), 0);
	assert_int_equal(bench.targets.tids.count, 5);
}

static void vcpus_that_end_are_told_of_once(void **state)
{
	struct record_vcpu gone;

	assert_int_equal(FIND("-p", "100"), 0);
	assert_int_equal(record_targets_gone(&bench.tree.roots, &bench.targets, &gone), 0);
	fake_tree_thread_ends(&bench.tree, 100, 102);
	assert_int_equal(record_targets_gone(&bench.tree.roots, &bench.targets, &gone), 1);
	assert_int_equal(gone.vcpu.index, 1);
	assert_int_equal(record_targets_gone(&bench.tree.roots, &bench.targets, &gone), 0);
}

static void those_that_nobody_wants_are_not(void **state)
{
	struct record_vcpu new;

	assert_int_equal(FIND("-p", "100", "--vcpu", "0"), 0);
	fake_tree_thread(&bench.tree, 100, 103, "CPU 2/KVM");
	assert_int_equal(refresh(&new), 0);
}

/* The other threads of their cores are off. */
static void there_may_be_many_ranges_of_cpus(void **state)
{
	char text[4096] = "";

	for (int cpu = 0; cpu < 400; cpu += 2)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
			       cpu ? "," : "", cpu);
	fake_tree_file(&bench.tree, text, "sys/devices/system/cpu/online");
	assert_int_equal(FIND("-a"), 0);
	assert_int_equal(bench.targets.cpus.count, 200);
	assert_int_equal(bench.targets.cpus.items[199], 398);
}

static void what_is_no_list_of_cpus_is_told(void **state)
{
	static const char *const wrong[] = {
		"", "x", "1-", "3-1", "1,x", "-1", "1 2", "0-99999999"
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fake_tree_file(&bench.tree, wrong[i], "sys/devices/system/cpu/online");
		assert_int_equal(FIND("-a"), -PTVM_NOT_FOUND);
		assert_non_null(strstr(bench.error.message, "online: not readable"));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(guests_are_found_by_process_and_name),
		TEST(vcpus_can_be_chosen),
		TEST(what_runs_no_machine_is_told),
		TEST(whole_cpus_are_one_thread_that_is_any),
		TEST(what_is_named_twice_is_traced_once),
		TEST(cpus_must_be_online),
		TEST(there_may_be_many_ranges_of_cpus),
		TEST(what_is_no_list_of_cpus_is_told),
		TEST(cpus_that_come_online_are_told_of_once),
		TEST(those_that_are_not_to_be_traced_are_not),
		TEST(cpus_that_were_offline_are_told_of_each_time),
		TEST(vcpus_that_are_new_are_found_once),
		TEST(vcpus_that_end_are_told_of_once),
		TEST(those_that_nobody_wants_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
