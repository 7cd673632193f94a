#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/modules.h"
#include "guest/channel_mount.h"
#include "guest/guest_modules.h"
#include "tests/fake_tree.h"

static const char loaded[] = "kvm_intel 4096 0 - Live 0xffffffffc0000000\n"
			     "af-packet 4096 0 - Live 0xffffffffc0001000\n"
			     "\xff\x1b 4096 0 - Live 0xffffffffc0002000\n"
			     "../kvm 4096 0 - Live 0xffffffffc0003000\n"
			     "other 4096 0 - Live 0xffffffffc0004000\n";

struct bench {
	struct fake_tree tree;
	struct modules loaded;
	struct guest_modules modules;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	assert_int_equal(modules_parse(loaded, strlen(loaded), &bench.loaded), 0);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	guest_modules_free(&bench->modules);
	modules_free(&bench->loaded);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static const char *path_in(struct bench *bench, const char *text, const char *name)
{
	const struct guest_module *module;

	guest_modules_free(&bench->modules);
	assert_int_equal(guest_modules_name(&bench->loaded, &bench->modules), 0);
	assert_int_equal(
		guest_modules_find_paths(text, strlen(text), "6.1.0-fake", &bench->modules), 0);
	module = guest_modules_find(&bench->modules, name);
	assert_non_null(module);
	return module->path ? module->path : "-";
}

static void only_what_can_be_a_name_is_taken(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(guest_modules_name(&bench->loaded, &bench->modules), 0);
	assert_int_equal(bench->modules.count, 3);
	assert_string_equal(bench->modules.items[0].name, "af-packet");
	assert_null(guest_modules_find(&bench->modules, "../kvm"));
	assert_null(guest_modules_find(&bench->modules, ""));
}

static void a_path_is_found_by_the_name_of_its_file(void **state)
{
	static const char text[] = "kernel/virt/kvm.ko: kernel/x.ko\n"
				   "kernel/arch/x86/kvm/kvm-intel.ko.zst: kernel/virt/kvm.ko\n"
				   "/lib/modules/other/other.ko:\nno colon";
	struct bench *bench = *state;

	assert_string_equal(path_in(bench, text, "kvm_intel"),
			    "/lib/modules/6.1.0-fake/kernel/arch/x86/kvm/kvm-intel.ko.zst");
	assert_string_equal(path_in(bench, text, "other"), "/lib/modules/other/other.ko");
	assert_string_equal(path_in(bench, "", "other"), "-");
	assert_string_equal(path_in(bench, "other.ko:", "other"),
			    "/lib/modules/6.1.0-fake/other.ko");
}

static void what_leads_elsewhere_is_no_path(void **state)
{
	struct bench *bench = *state;

	assert_string_equal(path_in(bench, "/etc/other.ko:\n", "other"), "-");
	assert_string_equal(path_in(bench, "../../../etc/other.ko:\n", "other"), "-");
	assert_string_equal(path_in(bench, "/lib/modules/../other.ko:\n", "other"), "-");
	assert_string_equal(path_in(bench, "kernel/\033[2J/other.ko:\n", "other"), "-");
	assert_string_equal(path_in(bench, "other.ko", "other"), "-");
	assert_string_equal(path_in(bench, "other:\n.ko:\n:\n\n", "other"), "-");
}

static void a_mounted_guest_tells_build_ids(void **state)
{
	static const uint8_t note[] = { 4, 0, 0,   0,   2,   0, 0, 0, 3, 0,
					0, 0, 'G', 'N', 'U', 0, 1, 2, 0, 0 };
	struct bench *bench = *state;
	struct channel *channel;
	const struct guest_module *module;

	fake_tree_file(&bench->tree, "kernel/other.ko:\n", "lib/modules/6.1.0-fake/modules.dep");
	fake_tree_bytes(&bench->tree, note, sizeof(note),
			"sys/module/other/notes/.note.gnu.build-id");
	assert_int_equal(channel_mount_new(bench->tree.path, &channel, NULL), 0);
	assert_int_equal(guest_modules_read(channel, &bench->loaded, "6.1.0-fake", &bench->modules),
			 0);
	module = guest_modules_find(&bench->modules, "other");
	assert_int_equal(module->id.size, 2);
	assert_string_equal(module->path, "/lib/modules/6.1.0-fake/kernel/other.ko");
	module = guest_modules_find(&bench->modules, "kvm_intel");
	assert_int_equal(module->id.size, 0);
	assert_null(module->path);
	channel_free(channel);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_can_be_a_name_is_taken),
		TEST(a_path_is_found_by_the_name_of_its_file),
		TEST(what_leads_elsewhere_is_no_path),
		TEST(a_mounted_guest_tells_build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
