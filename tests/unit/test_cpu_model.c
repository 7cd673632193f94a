#include "host/machine/cpu_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tree_fixture.h"

static struct cpu_model read_model(const char *text)
{
	struct cpu_model cpu;

	memset(&cpu, 0xff, sizeof(cpu));
	fake_tree_file(&tree, text, "proc/cpuinfo");
	cpu_model_read(&tree.roots, &cpu);
	return cpu;
}

static void the_first_cpu_is_read(void **state)
{
	const struct cpu_model cpu =
		read_model("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
			   "model\t\t: 158\nmodel name\t: A: CPU @ 3 GHz\nstepping\t: 13\n"
			   "microcode\t: 0xf4\nflags\t\t: fpu vme intel_pt\n"
			   "vmx flags\t: vnmi hypervisor\n\n"
			   "processor\t: 1\nvendor_id\t: Other\ncpu family\t: 7\nmodel\t\t: 1\n"
			   "model name\t: B\nstepping\t: 2\nflags\t\t: fpu hypervisor\n");

	assert_string_equal(cpu.vendor, "GenuineIntel");
	assert_true(cpu.is_intel);
	assert_int_equal(cpu.family, 6);
	assert_int_equal(cpu.model, 158);
	assert_int_equal(cpu.stepping, 13);
	assert_string_equal(cpu.name, "A: CPU @ 3 GHz");
	assert_false(cpu.is_virtual);
}

static void a_hypervisor_below_us_shows(void **state)
{
	const struct cpu_model cpu = read_model("flags\t\t: fpu hypervisor lahf_lm\n");

	assert_true(cpu.is_virtual);
}

static void another_vendor_is_not_intel(void **state)
{
	const struct cpu_model cpu = read_model("vendor_id:AuthenticAMD\ncpu family:6\n");

	assert_string_equal(cpu.vendor, "AuthenticAMD");
	assert_int_equal(cpu.family, 6);
	assert_false(cpu.is_intel);
}

static void assert_unknown(const struct cpu_model *cpu)
{
	assert_string_equal(cpu->name, "unknown");
	assert_string_equal(cpu->vendor, "");
	assert_int_equal(cpu->family, 0);
	assert_int_equal(cpu->model, 0);
	assert_int_equal(cpu->stepping, 0);
	assert_false(cpu->is_intel);
	assert_false(cpu->is_virtual);
}

static void what_is_not_said_is_unknown(void **state)
{
	struct cpu_model cpu;

	memset(&cpu, 0xff, sizeof(cpu));
	cpu_model_read(&tree.roots, &cpu);
	assert_unknown(&cpu);
	cpu = read_model("processor\t: 0\nmodel_x\t: 3\nmodels: 4\nmodel\nflags\n\n"
			 "vendor_id\t: GenuineIntel\n");
	assert_unknown(&cpu);
}

static void values_that_are_too_long_are_cut(void **state)
{
	char text[400];
	struct cpu_model cpu;

	(void)snprintf(text, sizeof(text),
		       "vendor_id\t: GenuineIntelAndMore\nmodel name\t: %0100d\n", 1);
	cpu = read_model(text);
	assert_string_equal(cpu.vendor, "GenuineIntelAnd");
	assert_false(cpu.is_intel);
	assert_int_equal(strlen(cpu.name), sizeof(cpu.name) - 1);
}

static void broadwell_stops_pt(void **state)
{
	static const unsigned models[] = { 0x3d, 0x47, 0x4f, 0x56 };
	struct cpu_model cpu = { .family = 6 };

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		cpu.model = models[i];
		assert_true(cpu_model_stops_pt_in_vmx(&cpu));
	}
	cpu.model = 0x4e; /* Skylake */
	assert_false(cpu_model_stops_pt_in_vmx(&cpu));
	cpu = (struct cpu_model){ .family = 15, .model = 0x4f };
	assert_false(cpu_model_stops_pt_in_vmx(&cpu));
}

static void servers_since_skylake_have_skz84(void **state)
{
	static const unsigned models[] = { 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae };
	struct cpu_model cpu = { .family = 6 };

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		cpu.model = models[i];
		assert_true(cpu_model_has_skz84(&cpu));
	}
	cpu.model = 0x9e; /* a client */
	assert_false(cpu_model_has_skz84(&cpu));
	cpu.model = 1;
	assert_false(cpu_model_has_skz84(&cpu));
	cpu.family = 19;
	assert_true(cpu_model_has_skz84(&cpu));
	cpu.model = 0x55;
	assert_false(cpu_model_has_skz84(&cpu));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_cpu_is_read),
		TEST(a_hypervisor_below_us_shows),
		TEST(another_vendor_is_not_intel),
		TEST(what_is_not_said_is_unknown),
		TEST(values_that_are_too_long_are_cut),
		cmocka_unit_test(broadwell_stops_pt),
		cmocka_unit_test(servers_since_skylake_have_skz84),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
