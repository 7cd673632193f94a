#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/machine/module_files.h"
#include "tests/fake_tree.h"

/* modules.dep.bin as depmod writes it, of one module: a magic number, version 2.1, where the root
 * is and that it has a prefix and values; the prefix, one value of priority 0. Big-endian. */
static const char index_of_kvm_intel[] = "\xb0\x07\xf4\x57\0\2\0\1\xc0\0\0\x0c"
					 "kvm_intel\0"
					 "\0\0\0\1\0\0\0\0"
					 "kernel/arch/x86/kvm/kvm-intel.ko.xz:";

struct bench {
	struct fake_tree tree;
	char name[PATH_MAX];
};

static int set_up(void **state)
{
	static struct bench bench;

	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree, "6.1.0-fake\n", "proc/sys/kernel/osrelease");
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	fake_tree_deinit(&bench->tree);
	return 0;
}

static const char *ask(struct bench *bench, const char *name)
{
	struct module_files *files = module_files_open(&bench->tree.roots);

	module_files_name(files, name, bench->name);
	module_files_close(files);
	return bench->name;
}

static void a_module_is_named_by_its_file(void **state)
{
	struct bench *bench = *state;
	char expected[256];

	fake_tree_bytes(&bench->tree, index_of_kvm_intel, sizeof(index_of_kvm_intel),
			"lib/modules/6.1.0-fake/modules.dep.bin");
	(void)snprintf(expected, sizeof(expected),
		       "%s/lib/modules/6.1.0-fake/kernel/arch/x86/kvm/kvm-intel.ko.xz",
		       bench->tree.path);
	assert_string_equal(ask(bench, "kvm_intel"), expected);
	assert_string_equal(ask(bench, "of_my_own"), "[of_my_own]");
}

static void without_an_index_names_are_in_brackets(void **state)
{
	struct bench *bench = *state;

	assert_string_equal(ask(bench, "kvm_intel"), "[kvm_intel]");
	bench->tree.roots.modules = NULL;
	assert_null(module_files_open(&bench->tree.roots));
	assert_string_equal(ask(bench, "kvm_intel"), "[kvm_intel]");
}

static void a_kernel_without_a_release_has_none(void **state)
{
	struct bench *bench = *state;

	bench->tree.roots.proc = "/nonexistent";
	assert_null(module_files_open(&bench->tree.roots));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_module_is_named_by_its_file),
		TEST(without_an_index_names_are_in_brackets),
		TEST(a_kernel_without_a_release_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
