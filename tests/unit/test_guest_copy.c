#include <elf.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
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

#include "decode/base/mapped_file.h"
#include "decode/code/elf_file.h"
#include "guest/channel_agent.h"
#include "guest/channel_mount.h"
#include "guest/guest_copy.h"
#include "guest/output_directory.h"
#include "tests/fake_guest.h"

struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct channel *channel;
	struct output_directory directory;
	struct guest_copy copy;
	char path[PATH_MAX];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_tree_init(&fixture->tree);
	fake_guest_init(&fixture->tree);
	fixture->agent.tree = &fixture->tree;
	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/copy", fixture->tree.path);
	assert_int_equal(channel_mount_new(fixture->tree.path, &fixture->channel, NULL), 0);
	assert_int_equal(output_directory_make(fixture->path, &fixture->directory, NULL), 0);
	guest_copy_init(&fixture->copy, fixture->channel, &fixture->directory, "vm");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	guest_copy_free(&fixture->copy);
	output_directory_drop(&fixture->directory);
	channel_free(fixture->channel);
	assert_int_equal(fixture->agent.open, fixture->agent.closed);
	fake_tree_deinit(&fixture->tree);
	free(fixture);
	return 0;
}

static int copy_all(struct fixture *fixture, struct ptvm_error *error)
{
	int r;

	do {
		r = guest_copy_next(&fixture->copy, error);
	} while (r > 0);
	return r;
}

static void assert_fails(struct fixture *fixture, int code, const char *message)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(copy_all(fixture, &error), code);
	assert_string_equal(error.message, message);
}

static void assert_segment(const struct elf_file *elf, size_t i, uint64_t address, uint64_t size)
{
	const struct elf_segment *segment = &elf->segments.items[i];

	assert_int_equal(segment->address, address);
	assert_int_equal(segment->size, size);
	for (uint64_t at = 0; at < size; at++)
		if (elf->bytes.data[segment->offset + at] != fake_guest_byte(address + at))
			fail_msg("byte %#lx differs", (unsigned long)(address + at));
}

static void assert_kcore(const struct fixture *fixture)
{
	char path[PATH_MAX];
	struct elf_file elf;
	struct bytes bytes;

	output_directory_file(&fixture->directory, "kcore", path);
	assert_int_equal(mapped_file_open(path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read(path, bytes, &elf, NULL), 0);
	assert_int_equal(elf.type, ET_CORE);
	assert_int_equal(elf.segments.count, 4);
	assert_segment(&elf, 0, FAKE_GUEST_KERNEL, (FAKE_GUEST_TEXT_BYTES + 4095) & ~4095);
	assert_segment(&elf, 1, FAKE_GUEST_MODULE, FAKE_GUEST_MODULE_BYTES);
	assert_segment(&elf, 2, 0xffffffffc0550000, 4096);
	assert_segment(&elf, 3, FAKE_GUEST_THUNKS, 4096);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
}

static void only_code_is_copied_as_it_is(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_int_equal(fixture->copy.modules.count, 1);
	assert_kcore(fixture);
}

static void an_agent_gives_the_same(void **state)
{
	struct fixture *fixture = *state;
	const struct agent_line line = { fake_agent_ask, &fixture->agent };

	channel_free(fixture->channel);
	assert_int_equal(channel_agent_new(&line, &fixture->channel), 0);
	fixture->copy.channel = fixture->channel;
	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_kcore(fixture);
}

static void assert_fact(json_t *json, const char *name, const char *value, const char *from)
{
	json_t *fact = json_object_get(json, name);

	assert_string_equal(json_string_value(json_object_get(fact, "value")), value);
	assert_string_equal(json_string_value(json_object_get(fact, "from")), from);
}

/* A process may be started with any name. */
static void a_domain_may_have_any_bytes(void **state)
{
	struct fixture *fixture = *state;
	json_t *json;

	fixture->copy.domain = "b\xfcro";
	assert_int_equal(copy_all(fixture, NULL), 0);
	json = guest_copy_json(&fixture->copy);
	assert_string_equal(json_string_value(json_object_get(json, "domain")), "b?ro");
	json_decref(json);
	fixture->copy.domain = NULL;
	json = guest_copy_json(&fixture->copy);
	assert_true(json_is_null(json_object_get(json, "domain")));
	json_decref(json);
}

static void the_metadata_says_whose_they_are(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	json_t *json;

	assert_int_equal(copy_all(fixture, NULL), 0);
	output_directory_file(&fixture->directory, "guest.json", path);
	json = json_load_file(path, 0, NULL);
	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "domain")), "vm");
	assert_string_equal(json_string_value(json_object_get(json, "via")), "mount");
	assert_fact(json, "release", "6.1.0-fake", "/proc/sys/kernel/osrelease");
	assert_fact(json, "build_id", "0102feff", "/sys/kernel/notes");
	assert_fact(json, "kaslr_offset", "0x15000000", "VMCOREINFO");
	assert_fact(json, "boot_time", "1700000000", "/proc/stat");
	assert_true(json_is_null(json_object_get(json, "boot_id")));
	json_decref(json);
}

static void files_are_private(void **state)
{
	static const char *const names[] = { "kcore", "kallsyms", "modules", "guest.json" };
	struct fixture *fixture = *state;
	struct stat status;
	char path[PATH_MAX];

	assert_int_equal(copy_all(fixture, NULL), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		output_directory_file(&fixture->directory, names[i], path);
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_mode & 0777, 0600);
	}
}

static void go_on_until(struct fixture *fixture, const char *doing)
{
	while (strcmp(fixture->copy.doing, doing))
		assert_int_equal(guest_copy_next(&fixture->copy, NULL), 1);
}

static void a_module_that_was_loaded_meanwhile_is_copied_too(void **state)
{
	struct fixture *fixture = *state;

	go_on_until(fixture, "code");
	fake_tree_file(&fixture->tree,
		       "virtio 12288 1 virtio_pci, Live 0xffffffffc0533000\n"
		       "late 4096 0 - Live 0xffffffffc0536000\n",
		       "proc/modules");
	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_int_equal(fixture->copy.tries, 1);
	assert_int_equal(fixture->copy.modules.count, 2);
	assert_int_equal(fixture->copy.code.pieces.items[1].size, FAKE_GUEST_MODULE_BYTES + 4096);
}

static void a_count_of_users_is_no_change(void **state)
{
	struct fixture *fixture = *state;

	go_on_until(fixture, "code");
	fake_tree_file(&fixture->tree, "virtio 12288 7 - Live 0xffffffffc0533000\n",
		       "proc/modules");
	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_int_equal(fixture->copy.tries, 0);
}

static void modules_that_keep_changing_end_it(void **state)
{
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };
	char text[64];
	int r = 1;

	for (int pages = 1; r > 0; pages++) {
		(void)snprintf(text, sizeof(text), "a %d 0 - Live 0xffffffffc0533000\n",
			       pages * 4096);
		fake_tree_file(&fixture->tree, text, "proc/modules");
		r = guest_copy_next(&fixture->copy, &error);
	}
	assert_int_equal(r, -PTVM_INCONSISTENT);
	assert_string_equal(error.message, "/proc/modules: changed during each of 3 copies");
}

static void a_guest_that_hides_addresses_is_told_so(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_file(&fixture->tree, "0000000000000000 T _stext\n0000000000000000 T _etext\n",
		       "proc/kallsyms");
	assert_fails(fixture, -PTVM_BAD_INPUT,
		     "/proc/kallsyms: no addresses: it was not root who read it, or "
		     "kernel.kptr_restrict is 2 there");
}

static void a_mount_that_shows_no_sizes_is_told_so(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_file(&fixture->tree, "", "proc/kallsyms");
	assert_fails(fixture, -PTVM_BAD_INPUT,
		     "/proc/kallsyms: empty (a mount by sshfs needs -o direct_io)");
}

static void set_size(const struct fixture *fixture, const char *name, off_t size)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->tree.proc, name);
	assert_int_equal(truncate(path, size), 0);
}

static void endless_symbols_are_refused(void **state)
{
	struct fixture *fixture = *state;

	set_size(fixture, "kallsyms", (off_t)1 << 40);
	assert_fails(fixture, -PTVM_BAD_INPUT, "/proc/kallsyms: more than 64 MiB");
}

static void endless_modules_are_refused(void **state)
{
	struct fixture *fixture = *state;

	set_size(fixture, "modules", (off_t)1 << 40);
	assert_fails(fixture, -PTVM_BAD_INPUT, "/proc/modules: 1 MiB or more");
}

static void code_that_is_promised_must_be_there(void **state)
{
	struct fixture *fixture = *state;

	set_size(fixture, "kcore", 0x10000 + 0x1000);
	assert_fails(fixture, -PTVM_BAD_INPUT, "/proc/kcore: ends before 0x110000");
}

static void a_kcore_that_is_none_is_refused(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_file(&fixture->tree, "\177ELF\2\1\1", "proc/kcore");
	assert_fails(fixture, -PTVM_BAD_INPUT, "/proc/kcore: not a core file of x86-64");
}

static void a_kernel_that_is_not_in_kcore_is_refused(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_file(&fixture->tree, "ffffffff81000000 T _stext\nffffffff82000000 T _etext\n",
		       "proc/kallsyms");
	assert_fails(fixture, -PTVM_BAD_INPUT, "/proc/kcore: no kernel text at 0xffffffff81000000");
}

/* What VMCOREINFO calls the top table is another one. */
static void page_tables_that_are_not_the_kernels_say_nothing(void **state)
{
	static const char from[] = "(init_top_pgt)=ffffffff80002000", to[] = "80003000";
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct bytes bytes;
	int file;

	(void)snprintf(path, sizeof(path), "%s/proc/kcore", fixture->tree.path);
	assert_int_equal(mapped_file_open(path, &bytes, NULL), 0);
	file = open(path, O_WRONLY);
	assert_int_equal(
		pwrite(file, to, strlen(to),
		       (const uint8_t *)memmem(bytes.data, bytes.size, from, strlen(from)) -
			       bytes.data + (off_t)(strlen(from) - strlen(to))),
		strlen(to));
	(void)close(file);
	mapped_file_close(&bytes);
	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_int_equal(fixture->copy.code.pieces.count, 3);
}

/* A single segment whose header claims the whole address space. */
static void more_code_than_there_can_be_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct {
		Elf64_Ehdr file;
		Elf64_Phdr load;
	} kcore = { .file = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_CORE,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(kcore.file),
			      .e_ehsize = sizeof(kcore.file),
			      .e_phentsize = sizeof(kcore.load),
			      .e_phnum = 1 },
		    .load = { .p_type = PT_LOAD,
			      .p_vaddr = 0xffff800000000000,
			      .p_filesz = 0x7ffffffff000 } };

	fake_tree_bytes(&fixture->tree, &kcore, sizeof(kcore), "proc/kcore");
	fake_tree_file(&fixture->tree, "ffffffff81000000 T _stext\nffffffffa0000000 T _etext\n",
		       "proc/kallsyms");
	assert_fails(fixture, -PTVM_BAD_INPUT,
		     "/proc/kcore: more than 256 MiB of code (at 0xffffffff81000000)");
}

static void a_copy_takes_the_place_of_the_one_before(void **state)
{
	struct fixture *fixture = *state;
	char old[PATH_MAX + 16];

	assert_int_equal(copy_all(fixture, NULL), 0);
	assert_int_equal(output_directory_keep(&fixture->directory, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(output_directory_make(fixture->path, &fixture->directory, NULL),
				 0);
		assert_int_equal(output_directory_keep(&fixture->directory, NULL), 0);
	}
	(void)snprintf(old, sizeof(old), "%s.old/kcore", fixture->path);
	assert_int_equal(access(old, F_OK), -1);
	assert_int_equal(access(fixture->path, F_OK), 0);
}

static void a_directory_with_other_files_is_never_removed(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_file(&fixture->tree, "mine", "copy/file");
	fake_tree_file(&fixture->tree, "mine", "copy.old/file");
	assert_int_equal(output_directory_keep(&fixture->directory, NULL), -PTVM_SYSTEM);
	output_directory_drop(&fixture->directory);
	assert_int_equal(access(fixture->path, F_OK), 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(only_code_is_copied_as_it_is),
		WITH_FIXTURE(an_agent_gives_the_same),
		WITH_FIXTURE(the_metadata_says_whose_they_are),
		WITH_FIXTURE(a_domain_may_have_any_bytes),
		WITH_FIXTURE(files_are_private),
		WITH_FIXTURE(a_module_that_was_loaded_meanwhile_is_copied_too),
		WITH_FIXTURE(a_count_of_users_is_no_change),
		WITH_FIXTURE(modules_that_keep_changing_end_it),
		WITH_FIXTURE(a_guest_that_hides_addresses_is_told_so),
		WITH_FIXTURE(a_mount_that_shows_no_sizes_is_told_so),
		WITH_FIXTURE(endless_symbols_are_refused),
		WITH_FIXTURE(endless_modules_are_refused),
		WITH_FIXTURE(code_that_is_promised_must_be_there),
		WITH_FIXTURE(a_kcore_that_is_none_is_refused),
		WITH_FIXTURE(a_kernel_that_is_not_in_kcore_is_refused),
		WITH_FIXTURE(page_tables_that_are_not_the_kernels_say_nothing),
		WITH_FIXTURE(more_code_than_there_can_be_is_refused),
		WITH_FIXTURE(a_copy_takes_the_place_of_the_one_before),
		WITH_FIXTURE(a_directory_with_other_files_is_never_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
