/* Which files belong to which machine. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/elf_make.h"
#include "tests/fake_tree.h"

#define TEXT 0xffffffff81000000u
#define LATER 0xffffffffc0000000u

enum { PAGE = 4096 };

struct bench {
	struct fake_tree tree; /* the recording's directory is "run" in it */
	struct perf_data data;
	struct machine_options options;
	struct machines machines;
	struct ptvm_error error;
	char directory[100];
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	fake_tree_file(&bench->tree, "", "run/data");
	(void)snprintf(bench->directory, sizeof(bench->directory), "%s/run", bench->tree.path);
	bench->data.directory = bench->directory;
	bench->options.build_id_dir = "/nowhere";
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	machines_free(&bench->machines);
	free(bench->data.id_index.items);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

static void add_kcore(struct bench *bench, const char *path, uint64_t address, const char *code)
{
	uint8_t file[3 * PAGE], page[PAGE];
	const struct elf_make_segment segment = { address, page, PAGE };

	memset(page, code[0], PAGE);
	fake_tree_bytes(&bench->tree, file, elf_make(&segment, 1, file), path);
}

/* A kernel's three files in a directory; all its code is this letter, as is its symbol. */
static void add_kernel(struct bench *bench, const char *directory, const char *letter)
{
	char path[60];

	(void)snprintf(path, sizeof(path), "%s/kcore", directory);
	add_kcore(bench, path, TEXT, letter);
	fake_tree_file(&bench->tree, "kvm 4096 0 - Live 0xffffffffc0000000\n", "%s/modules",
		       directory);
	(void)snprintf(path, sizeof(path), "ffffffff81000000 T %s\n", letter);
	fake_tree_file(&bench->tree, path, "%s/kallsyms", directory);
}

static int load(struct bench *bench)
{
	machines_free(&bench->machines);
	bench->error = (struct ptvm_error){ 0 };
	return machines_load(&bench->data, &bench->options, &bench->machines, &bench->error);
}

/* The letter of a machine's code at an address, and that of its symbol; '-' for none. */
static const char *letters(struct machine *machine, uint64_t address)
{
	static char text[3];
	struct symbol_view symbol;
	struct code_view view;

	machine_symbol(machine, -1, address, 0, &symbol);
	text[0] = machine_code(machine, -1, address, 0, &view) ? '-' : (char)view.data[0];
	text[1] = symbol.name ? symbol.name[0] : '-';
	return text;
}

static void assert_guests(const struct bench *bench, const int32_t *pids, size_t count)
{
	assert_int_equal(bench->machines.guest_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bench->machines.guests[i]->pid, pids[i]);
}

static void each_machine_has_its_directory(void **state)
{
	static const int32_t pids[] = { 7, 123 };
	struct bench *bench = *state;

	add_kernel(bench, "run/kcore_dir", "h");
	add_kernel(bench, "run/kcore_dir__123", "g");
	add_kernel(bench, "run/kcore_dir__7", "s");
	bench->data.is_timeless = true;
	assert_int_equal(load(bench), 0);
	assert_guests(bench, pids, 2);
	assert_string_equal(bench->machines.host->kernel_name, "[kernel.kallsyms]");
	assert_true(bench->machines.host->is_timeless); /* the records were read */
	assert_string_equal(letters(bench->machines.host, TEXT), "hh");
	assert_string_equal(letters(bench->machines.guests[0], TEXT), "ss");
	assert_string_equal(letters(bench->machines.guests[1], TEXT), "gg");
}

static void other_names_are_no_guests(void **state)
{
	static const char *const names[] = {
		"run/kcore_dir__0/kcore",   "run/kcore_dir__-5/kcore",
		"run/kcore_dir__12x/kcore", "run/kcore_dir__/kcore",
		"run/kcore_dir__ 5/kcore",  "run/kcore_dir__2147483648/kcore",
		"run/kcore_dir_5/kcore"
	};
	static const int32_t last[] = { INT32_MAX };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fake_tree_file(&bench->tree, "", "%s", names[i]);
	assert_int_equal(load(bench), 0);
	assert_guests(bench, NULL, 0);
	fake_tree_file(&bench->tree, "", "run/kcore_dir__2147483647/kcore");
	assert_int_equal(load(bench), 0);
	assert_guests(bench, last, 1);
}

static void the_index_of_ids_names_guests(void **state)
{
	static const int32_t machines[] = { 0, 55, 5, 55 }, pids[] = { 5, 55 };
	struct bench *bench = *state;

	bench->data.id_index.count = sizeof(machines) / sizeof(machines[0]);
	bench->data.id_index.items =
		calloc(bench->data.id_index.count, sizeof(*bench->data.id_index.items));
	assert_non_null(bench->data.id_index.items);
	for (size_t i = 0; i < bench->data.id_index.count; i++)
		bench->data.id_index.items[i].machine_pid = machines[i];
	assert_int_equal(load(bench), 0);
	assert_guests(bench, pids, 2);
}

static void a_recording_of_one_file_has_no_kernels(void **state)
{
	struct bench *bench = *state;

	add_kernel(bench, "run/kcore_dir", "h");
	bench->data.directory = NULL;
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "--");
}

static void what_guests_show_below_a_mount_is_theirs(void **state)
{
	static const int32_t pids[] = { 6, 7 };
	struct bench *bench = *state;

	add_kernel(bench, "mount/7/proc", "m");
	add_kernel(bench, "mount/6/proc", "m");
	add_kernel(bench, "run/kcore_dir__6", "r"); /* goes before that */
	fake_tree_file(&bench->tree, "", "mount/other/file");
	bench->options.guest_mount = fake_tree_path(&bench->tree, "mount");
	assert_int_equal(load(bench), 0);
	assert_guests(bench, pids, 2);
	assert_string_equal(letters(bench->machines.guests[0], TEXT), "rr");
	assert_string_equal(letters(bench->machines.guests[1], TEXT), "mm");
}

static void a_named_kallsyms_brings_what_is_beside_it(void **state)
{
	struct bench *bench = *state;

	add_kernel(bench, "run/kcore_dir", "r");
	add_kcore(bench, "run/data.ptvm-kcore", LATER, "l");
	add_kernel(bench, "named", "n");
	bench->options.kallsyms = fake_tree_path(&bench->tree, "named/kallsyms");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "nn");
	/* of the recording's kernel, which need not be this one */
	assert_string_equal(letters(bench->machines.host, LATER), "--");
	fake_tree_file(&bench->tree, "junk", "named/kcore");
	assert_int_equal(load(bench), 0);
	assert_non_null(machines_note(&bench->machines, 0));
	assert_non_null(strstr(machines_note(&bench->machines, 0), "/named/kcore: "));
}

static void a_kernel_that_cannot_be_read_is_noted_once(void **state)
{
	struct bench *bench = *state;
	struct code_view view;

	add_kernel(bench, "run/kcore_dir", "r");
	fake_tree_file(&bench->tree, "junk", "run/kcore_dir/kcore");
	assert_int_equal(load(bench), 0);
	assert_int_equal(machine_code(bench->machines.host, -1, TEXT, 0, &view), -PTVM_NO_CODE);
	assert_non_null(strstr(machines_note(&bench->machines, 0), "/kcore_dir/kcore: "));
	assert_null(machines_note(&bench->machines, 1));
}

static void a_directory_that_we_may_not_enter_is_noted_once(void **state)
{
	struct bench *bench = *state;
	const bool is_root = !getuid();
	struct code_view view;
	char path[120];

	add_kernel(bench, "run/kcore_dir", "r");
	(void)snprintf(path, sizeof(path), "%s/kcore_dir", bench->directory);
	assert_int_equal(chmod(path, 0), 0);
	if (is_root && (chmod(bench->tree.path, 0755) || setresuid(65534, 65534, 0)))
		skip();
	assert_int_equal(load(bench), 0);
	if (is_root)
		assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(machine_code(bench->machines.host, -1, TEXT, 0, &view), -PTVM_NO_CODE);
	assert_non_null(strstr(machines_note(&bench->machines, 0), "/kcore_dir: Permission"));
	assert_null(machines_note(&bench->machines, 1));
}

static void a_named_kallsyms_without_kcore_has_no_code(void **state)
{
	struct bench *bench = *state;
	struct symbol_view view;

	add_kernel(bench, "run/kcore_dir", "r");
	fake_tree_file(&bench->tree, "ffffffff81000000 T n\n", "named/symbols");
	fake_tree_file(&bench->tree, "vfio 4096 0 - Live 0xffffffffc0000000\n", "named/modules");
	bench->options.kallsyms = fake_tree_path(&bench->tree, "named/symbols");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "-n");
	machine_symbol(bench->machines.host, -1, LATER, 0, &view);
	assert_string_equal(view.dso, "[vfio]");
}

static void a_name_without_a_directory_is_in_this_one(void **state)
{
	const int here = open(".", O_RDONLY | O_DIRECTORY);
	struct bench *bench = *state;

	assert_true(here >= 0);
	add_kernel(bench, "named", "n");
	assert_int_equal(chdir(fake_tree_path(&bench->tree, "named")), 0);
	bench->options.kallsyms = "kallsyms";
	assert_int_equal(load(bench), 0);
	assert_int_equal(fchdir(here), 0);
	(void)close(here);
	assert_string_equal(letters(bench->machines.host, TEXT), "nn");
}

static void a_named_kcore_goes_before_all(void **state)
{
	struct bench *bench = *state;

	add_kernel(bench, "run/kcore_dir", "r");
	add_kernel(bench, "named", "n");
	add_kcore(bench, "kcore", TEXT, "k");
	bench->options.kcore = fake_tree_path(&bench->tree, "kcore");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "kr");
	bench->options.kallsyms = fake_tree_path(&bench->tree, "named/kallsyms");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "kn");
}

static void files_of_guests_are_those_of_the_default_guest(void **state)
{
	static const int32_t pids[] = { 0, 7 };
	struct bench *bench = *state;
	struct symbol_view view;

	add_kernel(bench, "run/kcore_dir__7", "r");
	add_kernel(bench, "run/kcore_dir__0", "z"); /* nobody's */
	add_kernel(bench, "named", "n");
	fake_tree_file(&bench->tree, "vfio 4096 0 - Live 0xffffffffc0000000\n", "modules");
	bench->options.guest_kallsyms = fake_tree_path(&bench->tree, "named/kallsyms");
	assert_int_equal(load(bench), 0);
	assert_guests(bench, pids, 2);
	assert_string_equal(letters(bench->machines.guests[0], TEXT), "nn");
	assert_string_equal(letters(bench->machines.guests[1], TEXT), "rr");
	assert_string_equal(letters(bench->machines.host, TEXT), "--");
	bench->options.guest_kallsyms = NULL;
	bench->options.guest_modules = fake_tree_path(&bench->tree, "modules");
	assert_int_equal(load(bench), 0);
	machine_symbol(bench->machines.guests[0], -1, LATER, 0, &view);
	assert_string_equal(view.dso, "[vfio]");
	bench->options.guest_modules = NULL;
	bench->options.guest_kcore = fake_tree_path(&bench->tree, "named/kcore");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.guests[0], TEXT), "n-");
	bench->options.guest_kcore = NULL;
	bench->options.guest_vmlinux = fake_tree_path(&bench->tree, "named/kcore");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.guests[0], TEXT), "n-");
}

static void a_vmlinux_of_the_host_is_the_hosts(void **state)
{
	struct bench *bench = *state;

	add_kernel(bench, "named", "n");
	bench->options.vmlinux = fake_tree_path(&bench->tree, "named/kcore");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, TEXT), "n-");
	assert_guests(bench, NULL, 0);
}

static void later_copies_are_found_by_machine(void **state)
{
	struct bench *bench = *state;

	add_kernel(bench, "run/kcore_dir", "h");
	add_kernel(bench, "run/kcore_dir__7", "g");
	add_kcore(bench, "run/data.ptvm-kcore", LATER, "l");
	add_kcore(bench, "run/data.ptvm-kcore__7", LATER, "m");
	fake_tree_file(&bench->tree, "ffffffffc0000000 t s\t[x]\n", "run/data.ptvm-kallsyms");
	fake_tree_file(&bench->tree, "ffffffffc0000000 t t\t[x]\n", "run/data.ptvm-kallsyms__7");
	assert_int_equal(load(bench), 0);
	assert_string_equal(letters(bench->machines.host, LATER), "ls");
	assert_string_equal(letters(bench->machines.guests[0], LATER), "mt");
}

/* Also what no machine turns out to need. */
static void what_the_user_named_must_be_there(void **state)
{
	static const size_t places[] = { offsetof(struct machine_options, kallsyms),
					 offsetof(struct machine_options, vmlinux),
					 offsetof(struct machine_options, kcore),
					 offsetof(struct machine_options, guest_kallsyms),
					 offsetof(struct machine_options, guest_modules),
					 offsetof(struct machine_options, guest_vmlinux),
					 offsetof(struct machine_options, guest_kcore),
					 offsetof(struct machine_options, guest_mount),
					 offsetof(struct machine_options, symfs) };
	struct bench *bench = *state;
	const char *path = fake_tree_path(&bench->tree, "missing");

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		bench->options = (struct machine_options){ 0 };
		memcpy((char *)&bench->options + places[i], &path, sizeof(path));
		assert_int_equal(load(bench), -PTVM_SYSTEM);
		assert_int_equal(bench->error.sys_errno, ENOENT);
		assert_non_null(strstr(bench->error.message, path));
	}
}

static void a_mount_must_be_a_directory(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", "mount");
	bench->options.guest_mount = fake_tree_path(&bench->tree, "mount");
	assert_int_equal(load(bench), -PTVM_SYSTEM);
	assert_int_equal(bench->error.sys_errno, ENOTDIR);
	bench->options.guest_mount = NULL;
	bench->options.symfs = "";
	assert_int_equal(load(bench), 0);
}

static void programs_are_looked_for_where_the_user_says(void **state)
{
	struct bench *bench = *state;
	const char *home = getenv("HOME");
	char expected[200];

	bench->options.symfs = bench->tree.path;
	bench->options.keep_mangled = true;
	assert_int_equal(load(bench), 0);
	assert_string_equal(bench->machines.host->places.symfs, bench->tree.path);
	assert_string_equal(bench->machines.host->places.build_id_dir, "/nowhere");
	assert_true(bench->machines.host->places.keep_mangled);
	bench->options = (struct machine_options){ 0 };
	(void)snprintf(expected, sizeof(expected), "%s/.debug", home ? home : "");
	assert_int_equal(load(bench), 0);
	assert_string_equal(bench->machines.host->places.symfs, "");
	assert_string_equal(bench->machines.host->places.build_id_dir, expected);
	assert_false(bench->machines.host->places.keep_mangled);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(each_machine_has_its_directory),
		WITH_FIXTURE(other_names_are_no_guests),
		WITH_FIXTURE(the_index_of_ids_names_guests),
		WITH_FIXTURE(a_recording_of_one_file_has_no_kernels),
		WITH_FIXTURE(what_guests_show_below_a_mount_is_theirs),
		WITH_FIXTURE(a_named_kallsyms_brings_what_is_beside_it),
		WITH_FIXTURE(a_kernel_that_cannot_be_read_is_noted_once),
		WITH_FIXTURE(a_directory_that_we_may_not_enter_is_noted_once),
		WITH_FIXTURE(a_named_kallsyms_without_kcore_has_no_code),
		WITH_FIXTURE(a_name_without_a_directory_is_in_this_one),
		WITH_FIXTURE(a_named_kcore_goes_before_all),
		WITH_FIXTURE(files_of_guests_are_those_of_the_default_guest),
		WITH_FIXTURE(a_vmlinux_of_the_host_is_the_hosts),
		WITH_FIXTURE(later_copies_are_found_by_machine),
		WITH_FIXTURE(what_the_user_named_must_be_there),
		WITH_FIXTURE(a_mount_must_be_a_directory),
		WITH_FIXTURE(programs_are_looked_for_where_the_user_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
