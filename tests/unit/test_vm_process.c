#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/vm_process.h"
#include "tests/fake_tree.h"

static int set_up(void **state)
{
	static struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_file(&tree, "x\n", "proc/not-a-process/comm");
	*state = &tree;
	return 0;
}

static int tear_down(void **state)
{
	fake_tree_deinit(*state);
	return 0;
}

#define QEMU(tree, pid, arguments)                                                                 \
	fake_tree_process(tree, pid, "qemu-system-x86\n", "qemu\0" arguments,                      \
			  sizeof("qemu\0" arguments))

static void assert_name(const struct fake_tree *tree, int pid, const char *name)
{
	struct vm_process vm;

	assert_int_equal(vm_process_read(&tree->roots, pid, &vm, NULL), 0);
	assert_string_equal(vm.name, name);
}

static void a_name_is_read_as_qemu_reads_it(void **state)
{
	const struct fake_tree *tree = *state;

	QEMU(tree, 1, "-name\0plain");
	assert_name(tree, 1, "plain");
	QEMU(tree, 2, "--name\0guest=vm1,debug-threads=on");
	assert_name(tree, 2, "vm1");
	QEMU(tree, 3, "-name\0debug-threads=on,guest=vm,,1,process=x");
	assert_name(tree, 3, "vm,1");
	QEMU(tree, 4, "-name");
	assert_name(tree, 4, "");
	QEMU(tree, 5, "-name\0guest=");
	assert_name(tree, 5, "");
}

/* Whoever started it chose its name, and we print it. */
static void a_name_has_nothing_that_a_terminal_obeys(void **state)
{
	const struct fake_tree *tree = *state;

	QEMU(tree, 1, "-name\0v\033[2Jm");
	assert_name(tree, 1, "v?[2Jm");
}

static void a_long_name_is_cut(void **state)
{
	const struct fake_tree *tree = *state;
	char arguments[600] = "-name";
	struct vm_process vm;

	memset(arguments + 6, 'x', sizeof(arguments) - 7);
	fake_tree_process(tree, 1, "qemu-system-x86", arguments, sizeof(arguments));
	assert_int_equal(vm_process_read(&tree->roots, 1, &vm, NULL), 0);
	assert_int_equal(strlen(vm.name), sizeof(vm.name) - 1);
}

static void machines_are_found_by_name_and_uuid(void **state)
{
	const struct fake_tree *tree = *state;
	struct ptvm_error error = { 0 };
	struct vm_process vm;

	QEMU(tree, 1,
	     "-name\0guest=one\0-uuid\0"
	     "9e994102-3495-4346-9bac-e424641fa3f0");
	QEMU(tree, 22, "-name\0guest=two,debug-threads=on");
	assert_int_equal(vm_process_find(&tree->roots, "two", &vm, NULL), 0);
	assert_int_equal(vm.pid, 22);
	assert_string_equal(vm.comm, "qemu-system-x86");
	assert_int_equal(
		vm_process_find(&tree->roots, "9E994102-3495-4346-9bac-e424641fa3f0", &vm, NULL),
		0);
	assert_int_equal(vm.pid, 1);
	assert_int_equal(vm_process_find(&tree->roots, "tw", &vm, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "no process runs a machine called 'tw'");
}

static void a_name_that_two_have_is_refused(void **state)
{
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	QEMU(tree, 1, "-name\0same");
	QEMU(tree, 2, "-name\0same");
	assert_int_equal(vm_process_find(&tree->roots, "same", &vm, NULL), -PTVM_INCONSISTENT);
}

/* Whoever may start a process may give it such a command line. */
static void one_that_has_vcpus_goes_before_those_that_say_so(void **state)
{
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	QEMU(tree, 1, "-name\0same\0-accel\0kvm\0-uuid\0u");
	QEMU(tree, 3, "-name\0same\0-accel\0kvm\0-uuid\0u");
	QEMU(tree, 4, "-name\0same\0-accel\0kvm\0-uuid\0u");
	assert_int_equal(vm_process_find(&tree->roots, "same", &vm, NULL), -PTVM_INCONSISTENT);
	fake_tree_link(tree, "anon_inode:kvm-vcpu:0", "proc/3/fd/10");
	assert_int_equal(vm_process_find(&tree->roots, "same", &vm, NULL), 0);
	assert_int_equal(vm.pid, 3);
	assert_int_equal(vm_process_find(&tree->roots, "u", &vm, NULL), 0);
	assert_int_equal(vm.pid, 3);
	fake_tree_link(tree, "anon_inode:kvm-vcpu:0", "proc/4/fd/10");
	assert_int_equal(vm_process_find(&tree->roots, "same", &vm, NULL), -PTVM_INCONSISTENT);
}

/* As find(1), or what installs the machine. */
static void another_programs_option_names_no_machine(void **state)
{
	static const char find[] = "find\0/\0-name\0vm", install[] = "virt-install\0--name\0vm";
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	fake_tree_process(tree, 1, "find", find, sizeof(find));
	fake_tree_process(tree, 2, "virt-install", install, sizeof(install));
	assert_int_equal(vm_process_find(&tree->roots, "vm", &vm, NULL), -PTVM_NOT_FOUND);
	QEMU(tree, 3, "-name\0vm");
	assert_int_equal(vm_process_find(&tree->roots, "vm", &vm, NULL), 0);
	assert_int_equal(vm.pid, 3);
}

static void no_process_has_no_name(void **state)
{
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	fake_tree_process(tree, 1, "kthreadd\n", "", 0);
	assert_int_equal(vm_process_find(&tree->roots, "", &vm, NULL), -PTVM_NOT_FOUND);
}

static void assert_accelerator(const struct fake_tree *tree, int pid, enum vm_accelerator expected)
{
	struct vm_process vm;

	assert_int_equal(vm_process_read(&tree->roots, pid, &vm, NULL), 0);
	assert_int_equal(vm.accelerator, expected);
}

static void the_command_line_tells_the_accelerator(void **state)
{
	const struct fake_tree *tree = *state;

	QEMU(tree, 1, "-accel\0kvm");
	assert_accelerator(tree, 1, VM_KVM);
	QEMU(tree, 2, "-machine\0q35,accel=kvm");
	assert_accelerator(tree, 2, VM_KVM);
	QEMU(tree, 3,
	     "-enable-kvm\0-m\0"
	     "512");
	assert_accelerator(tree, 3, VM_KVM);
	QEMU(tree, 4, "-accel\0tcg,thread=multi");
	assert_accelerator(tree, 4, VM_TCG);
	QEMU(tree, 5,
	     "-m\0"
	     "512");
	assert_accelerator(tree, 5, VM_TCG);
}

static void open_files_know_better(void **state)
{
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	QEMU(tree, 1, "-accel\0kvm\0-accel\0tcg");
	fake_tree_link(tree, "anon_inode:kvm-vm", "proc/1/fd/9");
	fake_tree_link(tree, "anon_inode:kvm-vcpu:0", "proc/1/fd/10");
	fake_tree_link(tree, "anon_inode:kvm-vcpu:1", "proc/1/fd/11");
	assert_int_equal(vm_process_read(&tree->roots, 1, &vm, NULL), 0);
	assert_int_equal(vm.accelerator, VM_KVM);
	assert_int_equal(vm.vcpu_fds, 2);

	QEMU(tree, 2, "-accel\0kvm");
	fake_tree_link(tree, "/dev/null", "proc/2/fd/0");
	assert_accelerator(tree, 2, VM_TCG);
}

static void vmms_other_than_qemu_are_known_by_their_files(void **state)
{
	const struct fake_tree *tree = *state;
	struct ptvm_error error = { 0 };
	struct vm_process vm;

	fake_tree_process(tree, 1, "firecracker\n", "fc", 3);
	fake_tree_link(tree, "anon_inode:kvm-vm", "proc/1/fd/9");
	assert_accelerator(tree, 1, VM_KVM);
	fake_tree_process(tree, 2, "bash\n", "bash", 5);
	assert_int_equal(vm_process_read(&tree->roots, 2, &vm, &error), -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "process 2 runs no virtual machine");
	assert_int_equal(vm_process_read(&tree->roots, 3, &vm, NULL), -PTVM_NOT_FOUND);
}

static void protected_memory_and_the_agent_are_seen(void **state)
{
	const struct fake_tree *tree = *state;
	struct vm_process vm;

	QEMU(tree, 1,
	     "-object\0{\"qom-type\":\"sev-guest\",\"id\":\"lsec0\"}\0"
	     "-device\0virtserialport,name=org.qemu.guest_agent.0");
	assert_int_equal(vm_process_read(&tree->roots, 1, &vm, NULL), 0);
	assert_int_equal(vm.protection, VM_SEV);
	assert_true(vm.has_agent);
	QEMU(tree, 2, "-object\0tdx-guest,id=tdx0");
	assert_int_equal(vm_process_read(&tree->roots, 2, &vm, NULL), 0);
	assert_int_equal(vm.protection, VM_TDX);
	assert_false(vm.has_agent);
	QEMU(tree, 3,
	     "-m\0"
	     "512");
	fake_tree_link(tree, "anon_inode:[kvm-gmem]", "proc/3/fd/9");
	assert_int_equal(vm_process_read(&tree->roots, 3, &vm, NULL), 0);
	assert_int_equal(vm.protection, VM_GUEST_MEMFD);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_is_read_as_qemu_reads_it),
		TEST(a_name_has_nothing_that_a_terminal_obeys),
		TEST(a_long_name_is_cut),
		TEST(machines_are_found_by_name_and_uuid),
		TEST(a_name_that_two_have_is_refused),
		TEST(one_that_has_vcpus_goes_before_those_that_say_so),
		TEST(another_programs_option_names_no_machine),
		TEST(no_process_has_no_name),
		TEST(the_command_line_tells_the_accelerator),
		TEST(open_files_know_better),
		TEST(vmms_other_than_qemu_are_known_by_their_files),
		TEST(protected_memory_and_the_agent_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
