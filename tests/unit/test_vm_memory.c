#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm/vm_memory.h"
#include "tests/fake_domain.h"
#include "tests/fake_tree.h"

/* Memory of a process that is a file: 4 KiB of A at 0x1000, of B at 0x3000. */
static struct vm_memory in_file(void)
{
	struct vm_memory memory = {
		.count = 2,
		.ranges = { { { 0x10000, 0x10fff }, 0x3000 }, { { 0xf000, 0xffff }, 0x1000 } },
	};
	char name[] = "/tmp/ptvm-test-XXXXXX", page[4096];

	memory.file = mkstemp(name);
	assert_true(memory.file >= 0);
	(void)unlink(name);
	memset(page, 'A', sizeof(page));
	assert_int_equal(pwrite(memory.file, page, sizeof(page), 0x1000), sizeof(page));
	memset(page, 'B', sizeof(page));
	assert_int_equal(pwrite(memory.file, page, sizeof(page), 0x3000), sizeof(page));
	return memory;
}

static void memory_is_read_across_ranges(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	char data[4] = "";

	assert_int_equal(reader.read(reader.context, 0xfffe, data, 4, NULL), 0);
	assert_memory_equal(data, "AABB", 4);
	vm_memory_close(&memory);
}

static void there_is_no_memory_outside_of_ranges(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	struct ptvm_error error = { 0 };
	char data[4];

	assert_int_equal(reader.read(reader.context, 0x10ffe, data, 4, &error), -PTVM_NOT_FOUND);
	assert_int_equal(reader.read(reader.context, 0, data, 4, &error), -PTVM_NOT_FOUND);
	assert_int_equal(error.code, PTVM_OK);
	vm_memory_close(&memory);
}

static void a_process_that_ended_is_told(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	struct ptvm_error error = { 0 };
	char data[4];

	assert_int_equal(ftruncate(memory.file, 0), 0);
	assert_int_equal(reader.read(reader.context, 0x10000, data, 4, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "the process that runs the guest has ended");
	vm_memory_close(&memory);
}

#define UUID "5c5c9a52-0a2f-4b7e-9d4c-6a3b1f0e2d11"

/* Ask the monitor of a guest whose process is here, as far as that goes, and read four bytes. */
static int open_here(const struct fake_tree *tree, char ret[4], struct ptvm_error *error)
{
	struct domain_link *link;
	struct vm_memory memory;
	struct guest_memory reader;
	int r;

	*error = (struct ptvm_error){ 0 };
	assert_int_equal(domain_link_open("test:///", false, &link, NULL), 0);
	r = vm_memory_open(&tree->roots, link, UUID, &memory, error);
	reader = vm_memory_reader(&memory);
	if (!r)
		r = reader.read(reader.context, 0x2000, ret, 4, error);
	vm_memory_close(&memory);
	domain_link_close(link);
	return r;
}

static void the_monitor_tells_where_memory_is_in_the_process(void **state)
{
	static const char arguments[] = "qemu-system-x86_64\0-name\0guest=vm\0-uuid\0" UUID;
	struct fake_tree tree;
	struct ptvm_error error = { 0 };
	char data[5] = "";

	fake_tree_init(&tree);
	fake_tree_process(&tree, 70, "qemu-system-x86\n", arguments, sizeof(arguments));
	fake_tree_file(&tree, "0123456789abcdefGHIJ", "proc/70/mem");
	fake_libvirt = (struct fake_libvirt){
		.domain = { .name = "vm", .id = 3, .is_running = true, .uuid = UUID },
		.registers = "CPU#0\nCR0=80050033 CR3=0000000000001000 CR4=00750ea0\n"
			     "EFER=0000000000000d01\n",
		.memory_tree = " AS \"memory\", root: system\n Root memory region: system\n"
			       "  0000000000002000-0000000000002003 (prio 0, ram): pc.ram\n",
		.address = "Host virtual address for 0x2000 (pc.ram) is 0x10\n",
	};
	assert_int_equal(open_here(&tree, data, &error), 0);
	assert_string_equal(data, "GHIJ");
	fake_libvirt.address = "No memory is mapped at address 0x2000\n";
	assert_int_equal(open_here(&tree, data, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "QEMU's monitor does not tell where guest memory is "
					   "(gpa2hva 0x2000)");
	fake_libvirt.memory_tree = "nothing";
	assert_int_equal(open_here(&tree, data, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "QEMU's monitor shows no RAM of the guest");
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
	fake_tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read_across_ranges),
		cmocka_unit_test(there_is_no_memory_outside_of_ranges),
		cmocka_unit_test(a_process_that_ended_is_told),
		cmocka_unit_test(the_monitor_tells_where_memory_is_in_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
