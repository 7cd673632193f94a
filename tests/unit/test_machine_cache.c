/* The host's kernel for a recording that brings none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"
#include "decode/code/machine_parts.h"
#include "tests/fake_tree.h"

#define TEXT 0xffffffff81000000u
#define MODULE 0xffffffffc0000000u
#define KCORE "[kernel.kcore]/0123/"
#define OTHERS "[kernel.kcore]/4567/"
#define KALLSYMS "[kernel.kallsyms]/0123/kallsyms"

struct bench {
	struct fake_tree tree;
	struct machine *host; /* recorded with its kernel at TEXT and a module "kvm" at MODULE */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	bench->host = machine_new(0, false);
	assert_non_null(bench->host);
	bench->host->places.build_id_dir = bench->tree.path;
	bench->host->places.symfs = "";
	bench->host->kernel_id = build_id_make((const uint8_t *)"\x01\x23", 2);
	bench->host->reference_name = "_text";
	bench->host->reference_address = TEXT;
	assert_int_equal(named_ranges_add(&bench->host->maps, TEXT, TEXT + 4096, 0,
					  bench->host->kernel_name),
			 0);
	assert_int_equal(named_ranges_add(&bench->host->maps, MODULE, MODULE + 4096, 0, "[kvm]"),
			 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	machine_free(bench->host);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

/* A copy with the kernel and the module at these addresses. */
static void add_copy(const struct bench *bench, const char *name, uint64_t text, uint64_t module)
{
	char line[60];

	fake_tree_file(&bench->tree, "ELF", "%s/kcore", name);
	(void)snprintf(line, sizeof(line), "%lx T _text\n", text);
	fake_tree_file(&bench->tree, line, "%s/kallsyms", name);
	(void)snprintf(line, sizeof(line), "kvm 4096 0 - Live 0x%lx\n", module);
	fake_tree_file(&bench->tree, line, "%s/modules", name);
}

/* A path below the tree; "" for none. */
static void assert_below(const struct bench *bench, const char *path, const char *expected)
{
	const size_t size = strlen(bench->tree.path) + 1;

	assert_true(!path || strlen(path) > size);
	assert_string_equal(path ? path + size : "", expected);
}

static void assert_copy(const struct bench *bench, const char *name)
{
	const struct kernel_files files = machine_cached_kernel(bench->host);
	char path[100];

	(void)snprintf(path, sizeof(path), "%s/kcore", name);
	assert_below(bench, files.kcore, path);
	(void)snprintf(path, sizeof(path), "%s/kallsyms", name);
	assert_below(bench, files.kallsyms, path);
	(void)snprintf(path, sizeof(path), "%s/modules", name);
	assert_below(bench, files.modules, path);
}

static void assert_symbols_only(const struct bench *bench, const char *path)
{
	const struct kernel_files files = machine_cached_kernel(bench->host);

	assert_below(bench, files.kallsyms, path);
	assert_null(files.kcore);
	assert_null(files.modules);
}

static void the_last_copy_is_used(void **state)
{
	const struct bench *bench = *state;

	add_copy(bench, KCORE "2026010203040506", TEXT, MODULE);
	add_copy(bench, KCORE "2026010203050506", TEXT, MODULE);
	add_copy(bench, KCORE "2025110203040506", TEXT, MODULE);
	add_copy(bench, OTHERS "2027010203040506", TEXT, MODULE);
	assert_copy(bench, KCORE "2026010203050506");
}

static void copies_of_other_boots_are_not(void **state)
{
	const struct bench *bench = *state;

	add_copy(bench, KCORE "2026010203040506", TEXT, MODULE);
	add_copy(bench, KCORE "2026010203040507", TEXT + 0x200000, MODULE);
	add_copy(bench, KCORE "2026010203040508", TEXT, MODULE + 0x1000);
	fake_tree_file(&bench->tree, "", KCORE "2026010203040509/kcore");
	assert_copy(bench, KCORE "2026010203040506");
	bench->host->reference_name = NULL; /* the recording does not say */
	assert_copy(bench, KCORE "2026010203040507");
}

static void a_module_must_have_its_name(void **state)
{
	const struct bench *bench = *state;

	add_copy(bench, KCORE "2026010203040506", TEXT, MODULE);
	fake_tree_file(&bench->tree, "vfio 4096 0 - Live 0xffffffffc0000000\n",
		       KCORE "2026010203040506/modules");
	assert_symbols_only(bench, "");
}

static void symbols_are_kept_without_code(void **state)
{
	const struct bench *bench = *state;

	add_copy(bench, KCORE "2026010203040506", TEXT, MODULE + 0x1000);
	fake_tree_file(&bench->tree, "ffffffff81000000 T _text\n", KALLSYMS);
	assert_symbols_only(bench, KALLSYMS);
}

static void without_a_build_id_there_is_nothing(void **state)
{
	const struct bench *bench = *state;

	fake_tree_file(&bench->tree, "ffffffff81000000 T _text\n", KALLSYMS);
	bench->host->places.symfs = bench->tree.path;
	assert_symbols_only(bench, "");
	bench->host->places.symfs = "";
	bench->host->kernel_id.size = 0;
	assert_symbols_only(bench, "");
}

static void the_kernel_that_runs_is_its_own_copy(void **state)
{
	const struct bench *bench = *state;
	_cleanup_fclose_ FILE *notes = fopen("/sys/kernel/notes", "re");
	uint8_t bytes[4096];
	struct kernel_files files;

	if (!notes || access("/proc/kallsyms", F_OK) ||
	    !build_id_find((struct bytes){ bytes, fread(bytes, 1, sizeof(bytes), notes) },
			   &bench->host->kernel_id))
		skip();
	files = machine_cached_kernel(bench->host);
	assert_string_equal(files.kallsyms, "/proc/kallsyms");
	assert_null(files.kcore);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_copy_is_used),
		TEST(copies_of_other_boots_are_not),
		TEST(a_module_must_have_its_name),
		TEST(symbols_are_kept_without_code),
		TEST(without_a_build_id_there_is_nothing),
		TEST(the_kernel_that_runs_is_its_own_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
