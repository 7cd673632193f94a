/* A kernel's code and symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "tests/elf_make.h"
#include "tests/fake_tree.h"

#define TEXT 0xffffffff81000000u
#define MODULE 0xffffffffc0000000u
#define MOVED 0x200000u

enum { PAGE = 4096 };

/* A host, and the files that there are of its kernel. */
struct bench {
	struct fake_tree tree;
	struct machines machines;
	struct machine *host;
	struct kernel_files files, asked;
	struct ptvm_error error;
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	bench->machines.host = bench->host = machine_new(0, false);
	assert_non_null(bench->host);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	machines_free(&bench->machines);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

/* Write a file, and return its path. */
static const char *text_file(struct bench *bench, const char *name, const char *text)
{
	fake_tree_file(&bench->tree, text, "%s", name);
	return fake_tree_path(&bench->tree, name);
}

static const char *elf_file(struct bench *bench, const char *name,
			    const struct elf_make_segment *segments, size_t count)
{
	static uint8_t file[10 * PAGE];

	fake_tree_bytes(&bench->tree, file, elf_make(segments, count, file), name);
	return fake_tree_path(&bench->tree, name);
}

static const struct elf_make_segment segments[] = { { TEXT, "text of the kernel.", 19 },
						    { MODULE, "module", 6 },
						    { 0x1000, "user", 4 } };

static const char kallsyms[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T startup_64\n"
			       "ffffffff81000008 t schedule\n"
			       "ffffffff81000010 t last\n"
			       "ffffffff82000000 t elsewhere\n"
			       "ffffffffc0000002 t vmx_run\t[kvm_intel]\n";

static int load(struct bench *bench)
{
	bench->error = (struct ptvm_error){ 0 };
	return machine_load_kernel(bench->host, &bench->files, &bench->asked, &bench->error);
}

/* The code at an address is this text, and no more follows; "" none. */
static void assert_code(struct bench *bench, uint64_t address, const char *expected)
{
	struct code_view view;
	int r = machine_code(bench->host, -1, address, 100, &view);

	assert_int_equal(r, *expected ? 0 : -PTVM_NO_CODE);
	if (!*expected)
		return;
	assert_int_equal(view.left, strlen(expected));
	assert_memory_equal(view.data, expected, view.left);
}

/* "name+offset (dso)". */
static void assert_symbol(struct bench *bench, uint64_t address, const char *expected)
{
	struct symbol_view view;
	char text[100];

	machine_symbol(bench->host, -1, address, 100, &view);
	(void)snprintf(text, sizeof(text), "%s+%lu (%s)", view.name ? view.name : "?", view.offset,
		       view.dso ? view.dso : "?");
	assert_string_equal(text, expected);
}

static void assert_note(struct bench *bench, size_t index, const char *word)
{
	const char *note = machines_note(&bench->machines, index);

	if (!word) {
		assert_null(note);
		return;
	}
	assert_non_null(note);
	assert_non_null(strstr(note, word));
}

/* Where the recording says that a symbol was. */
static void say_where(struct bench *bench, const char *name, uint64_t address)
{
	bench->host->reference_name = name;
	bench->host->reference_address = address;
}

static void without_files_nothing_is_known(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(load(bench), 0);
	assert_note(bench, 0, NULL);
	assert_symbol(bench, TEXT, "?+0 (?)");
	assert_symbol(bench, TEXT + 1, "?+0 (?)");
	assert_note(bench, 0, "--kallsyms");
	assert_note(bench, 1, NULL);
}

static void code_of_a_kcore_is_all_the_kernels(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(named_ranges_add(&bench->host->maps, MODULE, MODULE + PAGE, 0, "[kvm]"),
			 0);
	bench->files.kcore = elf_file(bench, "kcore", segments, 3);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT + 8, "the kernel.");
	assert_code(bench, MODULE, "module");
	assert_code(bench, 0x1000, ""); /* no kernel is there */
	assert_symbol(bench, MODULE, "?+0 ([kernel.kallsyms])");
	assert_symbol(bench, MODULE + 6, "?+0 (?)");
	assert_note(bench, 0, NULL);
}

static void symbols_end_with_the_code(void **state)
{
	struct bench *bench = *state;

	bench->files.kallsyms = text_file(bench, "kallsyms", kallsyms);
	bench->files.later_kallsyms = text_file(bench, "later",
						"ffffffffc0000004 t new\t[n]\n"
						"ffffffffc0001000 t off\t[n]\n");
	bench->files.kcore = elf_file(bench, "kcore", segments, 3);
	assert_int_equal(load(bench), 0);
	assert_symbol(bench, TEXT + 18, "last+2 ([kernel.kallsyms])");
	assert_symbol(bench, TEXT + 19, "?+0 (?)");
	assert_symbol(bench, MODULE + 3, "vmx_run+1 ([kernel.kallsyms])");
	assert_symbol(bench, 0xffffffff82000000, "?+0 (?)");
	assert_int_equal(bench->host->later_symbols.count, 1);
	assert_int_equal(bench->host->later_symbols.items[0].end, MODULE + 6);
}

static void what_a_kcore_lacks_is_told(void **state)
{
	struct bench *bench = *state;
	uint8_t file[1024];
	size_t size = elf_make(segments, 3, file);

	fake_tree_bytes(&bench->tree, file, size - 6, "kcore");
	bench->files.kcore = fake_tree_path(&bench->tree, "kcore");
	assert_int_equal(load(bench), 0);
	assert_code(bench, MODULE, "modu");
	assert_note(bench, 0, "kcore: 2 segments not wholly in the file");
}

/* Each file alone, which is not what it should be. */
static void a_bad_file_is_an_error_where_it_was_asked_for(void **state)
{
	static const size_t places[] = { offsetof(struct kernel_files, kallsyms),
					 offsetof(struct kernel_files, kcore),
					 offsetof(struct kernel_files, vmlinux) };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (unsigned is_asked = 0; is_asked < 2; is_asked++) {
			struct bench *bench;
			const char *path;

			assert_int_equal(set_up(state), 0);
			bench = *state;
			path = text_file(bench, "bad", "neither one nor another");
			memcpy((char *)&bench->files + places[i], &path, sizeof(path));
			if (is_asked)
				bench->asked = bench->files;
			assert_int_equal(load(bench), is_asked ? -PTVM_BAD_INPUT : 0);
			if (is_asked)
				assert_non_null(strstr(bench->error.message, path));
			assert_note(bench, 0, is_asked ? NULL : path);
			assert_int_equal(tear_down(state), 0);
		}
}

static void modules_must_be_there_where_they_were_asked_for(void **state)
{
	struct bench *bench = *state;

	bench->files.modules = fake_tree_path(&bench->tree, "missing");
	assert_int_equal(load(bench), 0);
	assert_note(bench, 0, "missing");
	bench->asked.modules = bench->files.modules;
	assert_int_equal(load(bench), -PTVM_SYSTEM);
	assert_non_null(strstr(bench->error.message, "missing"));
}

static void one_bad_file_leaves_the_others(void **state)
{
	struct bench *bench = *state;

	bench->files.kallsyms = text_file(bench, "kallsyms", "none");
	bench->files.modules = text_file(bench, "modules", "none");
	bench->files.later_kallsyms = fake_tree_path(&bench->tree, "missing");
	bench->files.later_kcore = text_file(bench, "later", "none");
	bench->files.kcore = elf_file(bench, "kcore", segments, 1);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "text of the kernel.");
	assert_note(bench, 0, "kallsyms");
	assert_note(bench, 1, "missing");
	assert_note(bench, 2, "modules");
	assert_note(bench, 3, "later");
	assert_note(bench, 4, NULL);
}

static void a_kcore_without_a_kernel_is_a_bad_one(void **state)
{
	struct bench *bench = *state;

	bench->files.kcore = bench->asked.kcore = elf_file(bench, "kcore", segments + 2, 1);
	assert_int_equal(load(bench), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "no kernel code in it"));
}

static const char *write_vmlinux(struct bench *bench, bool has_symbols)
{
	static const struct elf_make_symbol symbols[] = { { "_stext", TEXT, 4 },
							  { "schedule", TEXT + 4, 8 } };
	uint8_t file[1024];

	fake_tree_bytes(&bench->tree, file,
			elf_make_symbols(segments, 1, symbols, has_symbols ? 2 : 0, file),
			"vmlinux");
	return fake_tree_path(&bench->tree, "vmlinux");
}

static void a_vmlinux_has_code_and_symbols(void **state)
{
	struct bench *bench = *state;

	bench->files.vmlinux = write_vmlinux(bench, true);
	bench->files.kallsyms =
		text_file(bench, "kallsyms", kallsyms); /* of which none is needed */
	say_where(bench, "_stext", TEXT);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "text of the kernel.");
	assert_symbol(bench, TEXT + 5, "schedule+1 ([kernel.kallsyms])");
	assert_symbol(bench, TEXT + 16, "?+0 (?)");
	assert_symbol(bench, MODULE + 2, "?+0 (?)");
}

static void a_vmlinux_is_moved_to_where_the_kernel_was(void **state)
{
	struct bench *bench = *state;

	bench->files.vmlinux = write_vmlinux(bench, true);
	say_where(bench, "_stext", TEXT + MOVED);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "");
	assert_code(bench, TEXT + MOVED, "text of the kernel.");
	assert_symbol(bench, TEXT + MOVED + 5, "schedule+1 ([kernel.kallsyms])");
	assert_symbol(bench, TEXT + MOVED + 12, "?+0 (?)");
	assert_symbol(bench, TEXT + 5, "?+0 (?)");
}

static void a_vmlinux_stays_where_its_reference_is_unknown(void **state)
{
	struct bench *bench = *state;

	bench->files.vmlinux = write_vmlinux(bench, true);
	say_where(bench, "_text", TEXT + MOVED);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "text of the kernel.");
	assert_symbol(bench, TEXT + 5, "schedule+1 ([kernel.kallsyms])");
}

static void a_vmlinux_without_symbols_takes_those_of_kallsyms(void **state)
{
	struct bench *bench = *state;

	bench->files.vmlinux = write_vmlinux(bench, false);
	bench->files.kallsyms = text_file(bench, "kallsyms", kallsyms);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "text of the kernel.");
	assert_symbol(bench, TEXT + 9, "schedule+1 ([kernel.kallsyms])");
	assert_symbol(bench, MODULE + 3, "vmx_run+1 ([kvm_intel])");
}

/* The kernel was elsewhere then; modules, which the symbols of it do not tell, are left. */
static void symbols_of_another_boot_are_moved(void **state)
{
	struct bench *bench = *state;

	bench->files.kallsyms = text_file(bench, "kallsyms", kallsyms);
	bench->files.later_kallsyms = text_file(bench, "later", "ffffffffc0000004 t new\t[n]\n");
	bench->files.kcore = elf_file(bench, "kcore", segments, 3);
	say_where(bench, "_text", TEXT + MOVED);
	assert_int_equal(load(bench), 0);
	assert_note(bench, 0, "_text is not where it was when traced; moved by 0x200000");
	assert_note(bench, 1, "kcore: not used, it is of another boot");
	assert_note(bench, 2, NULL);
	assert_symbol(bench, TEXT + MOVED + 9, "schedule+1 ([kernel.kallsyms])");
	assert_symbol(bench, TEXT + 9, "?+0 (?)");
	assert_symbol(bench, MODULE + 3, "vmx_run+1 ([kvm_intel])");
	assert_code(bench, TEXT, "");
	assert_int_equal(bench->host->later_symbols.count, 0);
}

static void a_kcore_that_was_asked_for_is_used_all_the_same(void **state)
{
	struct bench *bench = *state;

	bench->files.kallsyms = text_file(bench, "kallsyms", kallsyms);
	bench->files.kcore = bench->asked.kcore = elf_file(bench, "kcore", segments, 3);
	say_where(bench, "_text", TEXT + MOVED);
	assert_int_equal(load(bench), 0);
	assert_code(bench, TEXT, "text of the kernel.");
	assert_note(bench, 1, NULL);
}

static void a_kernel_that_is_where_it_was_is_not_moved(void **state)
{
	struct bench *bench = *state;

	bench->files.kallsyms = text_file(bench, "kallsyms", kallsyms);
	say_where(bench, "_text", TEXT);
	assert_int_equal(load(bench), 0);
	assert_note(bench, 0, NULL);
	assert_symbol(bench, TEXT + 9, "schedule+1 ([kernel.kallsyms])");
}

static const char modules[] = "kvm 4096 0 - Live 0xffffffffc0000000\n"
			      "kvm_intel 8192 0 - Live 0xffffffffc0001000\n";

static void modules_have_names_where_the_recording_has_none(void **state)
{
	struct bench *bench = *state;

	bench->files.modules = text_file(bench, "modules", modules);
	assert_int_equal(load(bench), 0);
	assert_symbol(bench, MODULE + PAGE - 1, "?+0 ([kvm])");
	assert_symbol(bench, MODULE + PAGE, "?+0 ([kvm_intel])");
	assert_symbol(bench, MODULE + 3 * PAGE, "?+0 (?)");
}

static void maps_of_the_recording_go_before_modules(void **state)
{
	struct bench *bench = *state;
	size_t dropped;

	assert_int_equal(named_ranges_add(&bench->host->maps, MODULE, MODULE + 1, 0, "[x]"), 0);
	assert_int_equal(history_finish(&bench->host->maps.history, &dropped), 0);
	bench->files.modules = text_file(bench, "modules", modules);
	assert_int_equal(load(bench), 0);
	assert_symbol(bench, MODULE, "?+0 ([x])");
	assert_symbol(bench, MODULE + 1, "?+0 (?)");
}

/* Pages in the second copy: one that the first has too, two that it has not, one that it has
 * otherwise, one that it has not and a part of one. */
static void a_later_copy_fills_gaps_and_tells_what_changed(void **state)
{
	static uint8_t first[PAGE], fourth[PAGE], later[5 * PAGE + 7];
	const struct elf_make_segment before[] = { { MODULE, first, PAGE },
						   { MODULE + 3 * PAGE, fourth, PAGE } };
	const struct elf_make_segment after[] = { { MODULE, later, sizeof(later) },
						  { 0x1000, later, PAGE },
						  { MODULE + 9 * PAGE, later, PAGE } };
	struct bench *bench = *state;
	struct code_view view;

	memset(first, '1', PAGE);
	memset(fourth, '4', PAGE);
	for (size_t i = 0; i < sizeof(later); i++)
		later[i] = (uint8_t)('1' + i / PAGE);
	memcpy(later + 3 * PAGE + 100, "change", 6);
	bench->files.kcore = elf_file(bench, "kcore", before, 2);
	bench->files.later_kcore = elf_file(bench, "later", after, 3);
	assert_int_equal(load(bench), 0);
	for (unsigned page = 0; page < 5; page++) {
		assert_int_equal(machine_code(bench->host, -1, MODULE + page * PAGE, 100, &view),
				 0);
		assert_int_equal(view.data[0], '1' + page);
	}
	assert_code(bench, MODULE + 5 * PAGE, "");
	assert_code(bench, 0x1000, "");
	assert_code(bench, MODULE + 10 * PAGE - 1, "1");
	assert_code(bench, MODULE + 10 * PAGE, "");
	assert_int_equal(bench->host->later.changes.count, 1);
	assert_int_equal(bench->host->later.changes.items[0].start, MODULE + 3 * PAGE + 100);
	assert_int_equal(machine_later_code(bench->host, MODULE + 3 * PAGE + 105, 1, 100).data[0],
			 'e');
	assert_symbol(bench, MODULE + 2 * PAGE, "?+0 ([kernel.kallsyms])");
	assert_note(bench, 0, NULL);
}

/* Memory for code where the first copy has nothing but INT3s was not in use. */
static void a_later_copy_has_the_code_of_what_was_not_in_use(void **state)
{
	static uint8_t first[3 * PAGE], later[3 * PAGE];
	const struct elf_make_segment before = { MODULE, first, sizeof(first) };
	const struct elf_make_segment after = { MODULE, later, sizeof(later) };
	struct bench *bench = *state;
	struct code_view view;

	memset(first, 0xcc, sizeof(first));
	first[2 * PAGE] = '1';
	memset(later, '2', sizeof(later));
	memset(later, 0xcc, PAGE);
	bench->files.kcore = elf_file(bench, "kcore", &before, 1);
	bench->files.later_kcore = elf_file(bench, "later", &after, 1);
	assert_int_equal(load(bench), 0);
	for (unsigned page = 0; page < 3; page++) {
		assert_int_equal(machine_code(bench->host, -1, MODULE + page * PAGE, 100, &view),
				 0);
		assert_int_equal(view.data[0], "\xcc\x32\x31"[page] & 0xff);
	}
	assert_int_equal(bench->host->later.changes.items[0].start, MODULE + 2 * PAGE);
	assert_note(bench, 0, NULL);
}

/* A program of BPF comes beside others, where there were INT3s; between two functions there are
 * fewer of them. */
static void a_later_copy_has_the_programs_that_came(void **state)
{
	static uint8_t first[PAGE], later[PAGE];
	const struct elf_make_segment before = { MODULE, first, sizeof(first) };
	const struct elf_make_segment after = { MODULE, later, sizeof(later) };
	struct bench *bench = *state;
	struct code_view view;

	memset(first, '1', sizeof(first));
	memset(first + 200, 0xcc, 63);
	memset(first + 1000, 0xcc, 64);
	memset(first + PAGE - 100, 0xcc, 100);
	memcpy(later, first, sizeof(later));
	memcpy(later + 210, "pad", 3);
	memcpy(later + 1010, "new", 3);
	later[PAGE - 1] = '2';
	bench->files.kcore = elf_file(bench, "kcore", &before, 1);
	bench->files.later_kcore = elf_file(bench, "later", &after, 1);
	assert_int_equal(load(bench), 0);
	assert_int_equal(machine_code(bench->host, -1, MODULE, 100, &view), 0);
	assert_int_equal(view.left, PAGE);
	memcpy(first + 1010, "new", 3);
	first[PAGE - 1] = '2';
	assert_memory_equal(view.data, first, PAGE);
	assert_int_equal(bench->host->later.changes.count, 1);
	assert_int_equal(bench->host->later.changes.items[0].start, MODULE + 210);
	assert_int_equal(bench->host->later.changes.items[0].end, MODULE + 213);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(without_files_nothing_is_known),
		WITH_FIXTURE(code_of_a_kcore_is_all_the_kernels),
		WITH_FIXTURE(symbols_end_with_the_code),
		WITH_FIXTURE(what_a_kcore_lacks_is_told),
		cmocka_unit_test(a_bad_file_is_an_error_where_it_was_asked_for),
		WITH_FIXTURE(modules_must_be_there_where_they_were_asked_for),
		WITH_FIXTURE(one_bad_file_leaves_the_others),
		WITH_FIXTURE(a_kcore_without_a_kernel_is_a_bad_one),
		WITH_FIXTURE(a_vmlinux_has_code_and_symbols),
		WITH_FIXTURE(a_vmlinux_is_moved_to_where_the_kernel_was),
		WITH_FIXTURE(a_vmlinux_stays_where_its_reference_is_unknown),
		WITH_FIXTURE(a_vmlinux_without_symbols_takes_those_of_kallsyms),
		WITH_FIXTURE(symbols_of_another_boot_are_moved),
		WITH_FIXTURE(a_kcore_that_was_asked_for_is_used_all_the_same),
		WITH_FIXTURE(a_kernel_that_is_where_it_was_is_not_moved),
		WITH_FIXTURE(modules_have_names_where_the_recording_has_none),
		WITH_FIXTURE(maps_of_the_recording_go_before_modules),
		WITH_FIXTURE(a_later_copy_fills_gaps_and_tells_what_changed),
		WITH_FIXTURE(a_later_copy_has_the_code_of_what_was_not_in_use),
		WITH_FIXTURE(a_later_copy_has_the_programs_that_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
