#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/vcpu_threads.h"
#include "tests/fake_tree.h"

enum { VM = 500 };

struct bench {
	struct fake_tree tree;
	struct vcpu_threads threads;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_process(&bench.tree, VM, "qemu-system-x86\n", "", 0);
	for (int tid = VM + 1; tid <= VM + 3; tid++)
		fake_tree_thread(&bench.tree, VM, tid, "worker\n");
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	vcpu_threads_free(&bench->threads);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static void find(struct bench *bench, size_t count)
{
	vcpu_threads_free(&bench->threads);
	assert_int_equal(vcpu_threads_find(&bench->tree.roots, VM, &bench->threads, NULL), 0);
	assert_int_equal(bench->threads.count, count);
}

static void assert_vcpu(const struct bench *bench, size_t at, unsigned index, int tid,
			unsigned ways, unsigned against)
{
	const struct vcpu_thread *thread = &bench->threads.items[at];

	assert_int_equal(thread->index, index);
	assert_int_equal(thread->tid, tid);
	assert_int_equal(thread->ways, ways);
	assert_int_equal(thread->against, against);
}

static void a_process_without_vcpus_has_none(void **state)
{
	find(*state, 0);
}

static void no_process_is_not_found(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(vcpu_threads_find(&bench->tree.roots, 77, &bench->threads, &error),
			 -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "there is no process 77");
}

static void names_of_all_vmms_are_known(void **state)
{
	static const char *const names[] = { "CPU 7/KVM\n", "fc_vcpu 7\n", "vcpu7\n",
					     "crosvm_vcpu7\n", "kvm-vcpu-7\n" };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fake_tree_thread(&bench->tree, VM, VM + 1, names[i]);
		find(bench, 1);
		assert_vcpu(bench, 0, 7, VM + 1, VCPU_BY_NAME, 0);
		assert_false(bench->threads.is_emulated);
	}
}

static void names_that_are_only_similar_are_not(void **state)
{
	static const char *const names[] = { "CPU /KVM", "CPU 1/KVMs", "CPU 1",
					     "xvcpu1",   "vcpu1x",     "vcpu",
					     "/KVM",     "CPU -1/KVM", "vcpu4096",
					     "" };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fake_tree_thread(&bench->tree, VM, VM + 1, names[i]);
		find(bench, 0);
	}
}

static void an_emulator_is_told_from_kvm(void **state)
{
	struct bench *bench = *state;

	fake_tree_thread(&bench->tree, VM, VM + 1, "CPU 0/TCG\n");
	find(bench, 1);
	assert_true(bench->threads.is_emulated);
	fake_tree_thread(&bench->tree, VM, VM + 1, "ALL CPUs/TCG\n");
	find(bench, 0);
	assert_true(bench->threads.is_emulated);
}

static void debugfs_knows_by_the_thread_that_made_the_machine(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "502\n", "debugfs/kvm/501-12/vcpu0/pid");
	fake_tree_file(&bench->tree, "503\n", "debugfs/kvm/501-12/vcpu1/pid");
	fake_tree_file(&bench->tree, "900\n", "debugfs/kvm/900-9/vcpu2/pid");
	find(bench, 2);
	assert_vcpu(bench, 0, 0, 502, VCPU_BY_DEBUGFS, 0);
	assert_vcpu(bench, 1, 1, 503, VCPU_BY_DEBUGFS, 0);
}

static void what_debugfs_says_of_no_thread_of_ours_is_left_out(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0\n", "debugfs/kvm/500-12/vcpu0/pid");
	fake_tree_file(&bench->tree, "900\n", "debugfs/kvm/500-12/vcpu1/pid");
	fake_tree_file(&bench->tree, "words\n", "debugfs/kvm/500-12/vcpu2/pid");
	find(bench, 0);
}

static void cgroups_of_version_2_lie_beside_the_main_thread(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0::/machine.slice/m.scope/libvirt/emulator\n",
		       "proc/500/cgroup");
	fake_tree_file(&bench->tree, "501\n",
		       "sys/fs/cgroup/machine.slice/m.scope/libvirt/vcpu0/cgroup.threads");
	fake_tree_file(&bench->tree, "900\n",
		       "sys/fs/cgroup/machine.slice/m.scope/libvirt/vcpu1/cgroup.threads");
	find(bench, 1);
	assert_vcpu(bench, 0, 0, 501, VCPU_BY_CGROUP, 0);
}

static void cgroups_of_version_1_have_their_controllers(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(
		&bench->tree,
		"no "
		"line\n9:name=systemd:/\n1:cpu,cpuacct:/machine/q/emulator\n7:blkio:/machine/q\n",
		"proc/500/cgroup");
	fake_tree_file(&bench->tree, "502\n", "sys/fs/cgroup/cpu,cpuacct/machine/q/vcpu3/tasks");
	find(bench, 1);
	assert_vcpu(bench, 0, 3, 502, VCPU_BY_CGROUP, 0);
}

static void a_cgroup_outside_our_view_is_not_followed(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0::/../../elsewhere\n", "proc/500/cgroup");
	fake_tree_file(&bench->tree, "502\n", "elsewhere/vcpu3/tasks");
	find(bench, 0);
}

static void the_ioctl_that_runs_a_vcpu_names_it(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "16 0x1d 0xae80 0x0 0x0 0x0 0x0 0x7ffe 0x7ffd\n",
		       "proc/500/task/502/syscall");
	fake_tree_file(&bench->tree, "16 0x1c 0xae80 0x0 0x0 0x0 0x0 0x7ffe 0x7ffd\n",
		       "proc/500/task/503/syscall");
	fake_tree_file(&bench->tree, "running\n", "proc/500/task/501/syscall");
	fake_tree_link(&bench->tree, "anon_inode:kvm-vcpu:5", "proc/500/fd/29");
	fake_tree_link(&bench->tree, "anon_inode:kvm-vm", "proc/500/fd/28");
	find(bench, 1);
	assert_vcpu(bench, 0, 5, 502, VCPU_BY_IOCTL, 0);
}

static void ways_agree_or_object_to_what_is_trusted_more(void **state)
{
	struct bench *bench = *state;
	char text[64];

	fake_tree_file(&bench->tree, "501\n", "debugfs/kvm/500-12/vcpu0/pid");
	fake_tree_file(&bench->tree, "502\n", "debugfs/kvm/500-12/vcpu1/pid");
	fake_tree_thread(&bench->tree, VM, 501, "CPU 0/KVM\n");
	fake_tree_thread(&bench->tree, VM, 503, "CPU 1/KVM\n");
	find(bench, 2);
	assert_vcpu(bench, 0, 0, 501, VCPU_BY_DEBUGFS | VCPU_BY_NAME, 0);
	assert_vcpu(bench, 1, 1, 502, VCPU_BY_DEBUGFS, VCPU_BY_NAME);
	assert_string_equal(vcpu_ways_text(bench->threads.items[0].ways, text, sizeof(text)),
			    "debugfs, name");
	assert_string_equal(vcpu_ways_text(15, text, sizeof(text)), "debugfs, cgroup, ioctl, name");
	assert_string_equal(vcpu_ways_text(0, text, sizeof(text)), "");
	assert_string_equal(vcpu_ways_text(15, text, 9), "debugfs,");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_without_vcpus_has_none),
		TEST(no_process_is_not_found),
		TEST(names_of_all_vmms_are_known),
		TEST(names_that_are_only_similar_are_not),
		TEST(an_emulator_is_told_from_kvm),
		TEST(debugfs_knows_by_the_thread_that_made_the_machine),
		TEST(what_debugfs_says_of_no_thread_of_ours_is_left_out),
		TEST(cgroups_of_version_2_lie_beside_the_main_thread),
		TEST(cgroups_of_version_1_have_their_controllers),
		TEST(a_cgroup_outside_our_view_is_not_followed),
		TEST(the_ioctl_that_runs_a_vcpu_names_it),
		TEST(ways_agree_or_object_to_what_is_trusted_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
