#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/modules.h"
#include "guest/channel_agent.h"
#include "guest/channel_mount.h"
#include "guest/guest_modules.h"
#include "tests/fake_guest.h"
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

static void assert_section(const struct guest_module *module, size_t i, const char *name,
			   uint64_t address)
{
	assert_true(i < module->sections.count);
	assert_string_equal(module->sections.items[i].name, name);
	assert_int_equal(module->sections.items[i].address, address);
}

static void a_mounted_guest_tells_sections(void **state)
{
	struct bench *bench = *state;
	struct channel *channel;
	const struct guest_module *module;
	json_t *json, *sections;

	fake_tree_file(&bench->tree, "0xffffffffc0000000\n", "sys/module/kvm_intel/sections/.text");
	fake_tree_file(&bench->tree, "0xffffffffbff00000\n", "sys/module/kvm_intel/sections/.data");
	fake_tree_file(&bench->tree, "0xffffffffc0000a00\n",
		       "sys/module/kvm_intel/sections/__bug_table");
	fake_tree_file(&bench->tree, "0x0000000000000000\n", "sys/module/kvm_intel/sections/.bss");
	assert_int_equal(channel_mount_new(bench->tree.path, &channel, NULL), 0);
	assert_int_equal(guest_modules_read(channel, &bench->loaded, "", &bench->modules), 0);
	module = guest_modules_find(&bench->modules, "kvm_intel");
	assert_int_equal(module->sections.count, 2);
	assert_section(module, 0, ".data", 0xffffffffbff00000);
	assert_section(module, 1, ".text", 0xffffffffc0000000);
	json = guest_modules_json(&bench->modules);
	sections = json_object_get(json_array_get(json, 1), "sections");
	assert_int_equal(json_integer_value(json_object_get(sections, ".data")), -0x100000);
	assert_int_equal(json_integer_value(json_object_get(sections, ".text")), 0);
	json_decref(json);
	channel_free(channel);
}

/* A guest agent cannot list directories, so it is asked for sections by name. */
static void an_agent_is_asked_for_the_usual_sections(void **state)
{
	struct bench *bench = *state;
	struct fake_agent agent = { .tree = &bench->tree };
	const struct agent_line line = { fake_agent_ask, &agent };
	const struct guest_module *module;
	struct channel *channel;

	fake_tree_file(&bench->tree, "0xffffffffc0000000\n", "sys/module/kvm_intel/sections/.text");
	fake_tree_file(&bench->tree, "0xffffffffc0004000\n", "sys/module/other/sections/.text");
	fake_tree_file(&bench->tree, "0xffffffffc0005000\n", "sys/module/other/sections/.data");
	fake_tree_file(&bench->tree, "0xffffffffc0006000\n", "sys/module/other/sections/.data.odd");
	assert_int_equal(channel_agent_new(&line, &channel), 0);
	assert_int_equal(guest_modules_read(channel, &bench->loaded, "", &bench->modules), 0);
	module = guest_modules_find(&bench->modules, "kvm_intel");
	assert_int_equal(module->sections.count, 1);
	module = guest_modules_find(&bench->modules, "other");
	assert_int_equal(module->sections.count, 2);
	assert_section(module, 0, ".text", 0xffffffffc0004000);
	assert_section(module, 1, ".data", 0xffffffffc0005000);
	channel_free(channel);
	assert_int_equal(agent.open, agent.closed);
}

static void what_programs_print_of_many_files_is_taken(void **state)
{
	static const char text[] =
		"==> /sys/module/other/notes/.note.gnu.build-id <==\n"
		"\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\1\2\0\0"
		"\n\n==> /sys/module/other/sections/.note.gnu.build-id <==\n0xffffffffc0004000\n"
		"\n==> /sys/module/other/sections/.text.unlikely <==\n0xffffffffc0004100\n"
		"\n==> /sys/module/other/sections/.text <==\n0xffffffffc0004000\n"
		"\n==> /sys/module/other/sections/.altinstructions <==\n0xffffffffc0004200\n"
		"\n==> /sys/module/unknown/sections/.text <==\n0xffffffffc0004000\n"
		"\n==> /sys/module/kvm_intel/sections/.text <==\n0xffff";
	struct bench *bench = *state;
	const struct guest_module *module;

	assert_int_equal(guest_modules_name(&bench->loaded, &bench->modules), 0);
	assert_int_equal(guest_modules_take_files(text, sizeof(text) - 1, &bench->modules), 0);
	module = guest_modules_find(&bench->modules, "other");
	assert_int_equal(module->id.size, 2);
	assert_int_equal(module->sections.count, 2);
	assert_section(module, 0, ".text", 0xffffffffc0004000);
	assert_section(module, 1, ".text.unlikely", 0xffffffffc0004100);
	assert_section(guest_modules_find(&bench->modules, "kvm_intel"), 0, ".text", 0xffff);
}

static void what_no_program_prints_is_passed_over(void **state)
{
	static const char *const texts[] = {
		"==> ",
		"==> \n",
		"==> /sys/module/other <==\n1",
		"==> /sys/module/other/x\n1",
		"==> /sys/module/ <==\n",
		"==> /sys/module//.text <==\n1",
		"==> /sys/module/other/sections/.text <==",
		"==> /sys/module/other/sections/.text <==\nnone",
		"==> /sys/module/other/sections/.text <==\n111111111111111111111111111",
		"==> /sys/module/other/sections/.te\033xt <==\n1",
		"==> /sys/module/other/sections/ <==\n1",
		"==> /sys/module/other/.text <==\n1",
	};
	struct bench *bench = *state;

	assert_int_equal(guest_modules_name(&bench->loaded, &bench->modules), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(
			guest_modules_take_files(texts[i], strlen(texts[i]), &bench->modules), 0);
	for (size_t i = 0; i < bench->modules.count; i++)
		assert_int_equal(bench->modules.items[i].sections.count, 0);
}

static void sections_without_end_are_cut_off(void **state)
{
	struct bench *bench = *state;
	char text[100];

	assert_int_equal(guest_modules_name(&bench->loaded, &bench->modules), 0);
	for (int i = 1; i < 2 * GUEST_MODULES_SECTIONS; i++) {
		(void)snprintf(text, sizeof(text),
			       "==> /sys/module/other/sections/.text.%d <==\n%x\n", i, i);
		assert_int_equal(guest_modules_take_files(text, strlen(text), &bench->modules), 0);
	}
	assert_int_equal(guest_modules_find(&bench->modules, "other")->sections.count,
			 GUEST_MODULES_SECTIONS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_can_be_a_name_is_taken),
		TEST(a_path_is_found_by_the_name_of_its_file),
		TEST(what_leads_elsewhere_is_no_path),
		TEST(a_mounted_guest_tells_build_ids),
		TEST(a_mounted_guest_tells_sections),
		TEST(an_agent_is_asked_for_the_usual_sections),
		TEST(what_programs_print_of_many_files_is_taken),
		TEST(what_no_program_prints_is_passed_over),
		TEST(sections_without_end_are_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
