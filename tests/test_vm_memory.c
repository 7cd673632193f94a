#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm_memory.h"

static const char registers[] =
	"\r\nCPU#0\r\n"
	"RIP=ffffffffb0817a0b RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
	"CR0=80050033 CR2=00000000005794a9 CR3=00000000024e0000 CR4=00751eb0\r\n"
	"EFER=0000000000000d01\r\n"
	"\r\nCPU#1\r\n"
	"CR0=00000010 CR2=00000000 CR3=00001000 CR4=00000000\r\n"
	"EFER=0000000000000000\r\n"
	"\r\nCPU#2\r\n"
	"CR0=80050033 CR2=00000000399f2730 CR3=8000000010073804 CR4=00750ea0\r\n"
	"EFER=0000000000000d01\r\n";

static const char tree[] =
	"FlatView #0\r\n"
	" AS \"ich9-ahci\", root: bus master container\r\n"
	" Root memory region: bus master container\r\n"
	"  0000000000000000-0000000000000fff (prio 0, ram): other\r\n\r\n"
	"FlatView #1\r\n"
	" AS \"memory\", root: system\r\n"
	" AS \"cpu-memory-0\", root: system\r\n"
	" Root memory region: system\r\n"
	"  0000000000000000-00000000000bffff (prio 0, ram): pc.ram\r\n"
	"  00000000000c0000-00000000000dffff (prio 0, rom): pc.ram @00000000000c0000\r\n"
	"  0000000000100000-000000007fffffff (prio 0, ram): pc.ram @0000000000100000\r\n"
	"  00000000b0000000-00000000bfffffff (prio 0, i/o): pcie-mmcfg-mmio\r\n"
	"  00000000fee00000-00000000feefffff (prio 4096, i/o): apic-msi\r\n"
	"  0000000100000000-000000017fffffff (prio 0, ram): pc.ram @0000000080000000\r\n\r\n"
	"FlatView #2\r\n"
	"  0000000200000000-00000002ffffffff (prio 0, ram): another\r\n";

static void vcpus_in_64_bit_mode_have_tables(void **state)
{
	struct page_root roots[4];

	assert_int_equal(monitor_text_roots(registers, roots, 4), 2);
	assert_int_equal(roots[0].cr3, 0x24e0000);
	assert_true(roots[0].is_5_level);
	assert_int_equal(roots[1].cr3, 0x8000000010073804);
	assert_false(roots[1].is_5_level);
	assert_int_equal(monitor_text_roots(registers, roots, 1), 1);
	assert_int_equal(monitor_text_roots("", roots, 4), 0);
	assert_int_equal(monitor_text_roots("CPU#0 CR0=80050033", roots, 4), 0);
}

static void ram_is_told_from_all_else(void **state)
{
	struct monitor_range ranges[8];

	assert_int_equal(monitor_text_ram(tree, ranges, 8), 3);
	assert_int_equal(ranges[0].first, 0);
	assert_int_equal(ranges[0].last, 0xbffff);
	assert_int_equal(ranges[1].first, 0x100000);
	assert_int_equal(ranges[2].first, 0x100000000);
	assert_int_equal(ranges[2].last, 0x17fffffff);
	assert_int_equal(monitor_text_ram(tree, ranges, 2), 2);
	assert_int_equal(monitor_text_ram("unknown command", ranges, 8), 0);
}

static void an_address_is_what_comes_last(void **state)
{
	assert_int_equal(monitor_text_address(
				 "Host virtual address for 0x0 (pc is 0x1) is 0x7fa703e00000\r\n"),
			 0x7fa703e00000);
	assert_int_equal(monitor_text_address("No memory is mapped at address 0x5000000000"), 0);
	assert_int_equal(monitor_text_address(""), 0);
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vcpus_in_64_bit_mode_have_tables),
		cmocka_unit_test(ram_is_told_from_all_else),
		cmocka_unit_test(an_address_is_what_comes_last),
		cmocka_unit_test(memory_is_read_across_ranges),
		cmocka_unit_test(there_is_no_memory_outside_of_ranges),
		cmocka_unit_test(a_process_that_ended_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
