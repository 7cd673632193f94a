#include "host/vm/monitor_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "guest/page_walk.h"

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

static void assert_roots(const char *text, size_t expected)
{
	struct page_root roots[4];

	assert_int_equal(monitor_text_roots(text, roots, 4), expected);
}

/* In real mode, in 32-bit mode, and in long mode whose paging is off. */
static void other_modes_have_no_tables(void **state)
{
	assert_roots("CPU#0\nCR0=80000001 CR3=1000 CR4=0\nEFER=500\n", 1);
	assert_roots("CPU#0\nCR0=00000001 CR3=1000 CR4=0\nEFER=500\n", 0);
	assert_roots("CPU#0\nCR0=80000001 CR3=1000 CR4=0\nEFER=100\n", 0);
	assert_roots("CPU#0\nCR0=7fffffff CR3=1000 CR4=0\nEFER=bff\n", 0);
}

static void a_vcpu_has_its_own_registers_only(void **state)
{
	struct page_root roots[4];
	static const char text[] = "CPU#0\nCR0=80000001 CR4=0\nEFER=500\n"
				   "CPU#1\nCR0=80000001 CR3=2000 CR4=1000\n"
				   "CPU#2\nCR0=80000001 CR3=3000 CR4=1000\nEFER=500\n";

	assert_int_equal(monitor_text_roots(text, roots, 4), 1);
	assert_int_equal(roots[0].cr3, 0x3000);
	assert_true(roots[0].is_5_level);
}

static void text_may_end_anywhere(void **state)
{
	char text[sizeof(registers)];
	struct page_root roots[4];
	struct monitor_range ranges[4];

	for (size_t size = 0; size < sizeof(registers); size++) {
		memcpy(text, registers, size);
		text[size] = '\0';
		assert_true(monitor_text_roots(text, roots, 4) <= 2);
		assert_int_equal(monitor_text_ram(text, ranges, 4), 0);
	}
	assert_roots("CPU#", 0);
	assert_roots("CPU#CPU#CPU#", 0);
	assert_int_equal(monitor_text_roots(registers, roots, 0), 0);
}

#define VIEW " AS \"memory\", root: system\n Root memory region: system\n"

static void assert_ram(const char *text, size_t expected)
{
	struct monitor_range ranges[4];

	assert_int_equal(monitor_text_ram(text, ranges, 4), expected);
}

static void a_view_ends_with_its_ranges(void **state)
{
	assert_ram(VIEW "  1000-1fff (prio 0, ram): a\n  3000-3fff (prio -1, ram): b", 2);
	assert_ram(VIEW "  1000-1fff (prio 0, ram): a\n\n  3000-3fff (prio 0, ram): b\n", 1);
	assert_ram(VIEW, 0);
	assert_ram(VIEW "\n", 0);
	assert_ram(" AS \"memory\", root: system\n  1000-1fff (prio 0, ram): a\n", 0);
	assert_ram("\n Root memory region: system\n  1000-1fff (prio 0, ram): a\n", 0);
}

static void ranges_that_make_no_sense_are_left_out(void **state)
{
	assert_ram(VIEW "  2000-1fff (prio 0, ram): a\n  3000-3000 (prio 0, ram): b\n", 1);
	assert_ram(VIEW "  1000-1fff (prio 0, rams): a\n  3000-3fff (prio 0, ram): b\n", 1);
	assert_ram(VIEW "  1000-1fff (prio 0, ramramramram): a\n", 0);
	assert_ram(VIEW "  1000-1fff (prio 0\n  3000-3fff (prio 0, ram): b\n", 1);
	assert_ram(VIEW "  1000-x\n  3000-3fff (prio 0, ram): b\n", 0);
}

static void an_address_that_is_no_number_is_none(void **state)
{
	assert_int_equal(monitor_text_address("is 0x7 is 0x"), 0);
	assert_int_equal(monitor_text_address(" is 0xffffffffffffffff"), UINT64_MAX);
	assert_int_equal(monitor_text_address("is 0x7"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vcpus_in_64_bit_mode_have_tables),
		cmocka_unit_test(other_modes_have_no_tables),
		cmocka_unit_test(a_vcpu_has_its_own_registers_only),
		cmocka_unit_test(text_may_end_anywhere),
		cmocka_unit_test(ram_is_told_from_all_else),
		cmocka_unit_test(a_view_ends_with_its_ranges),
		cmocka_unit_test(ranges_that_make_no_sense_are_left_out),
		cmocka_unit_test(an_address_is_what_comes_last),
		cmocka_unit_test(an_address_that_is_no_number_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
