#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "guest/guest_modules.h"
#include "host/machine/build_ids.h"
#include "host/record/recording_out.h"
#include "tests/fake_tree.h"

enum { VM = 500, HOST = -1, KERNEL = 1, USER = 2, GUEST_KERNEL = 4 };

/* A build id of 4 bytes as an ELF note. */
struct note {
	Elf64_Nhdr header;
	char name[4];
	uint8_t id[4];
};

struct bench {
	struct fake_tree tree;
	struct build_ids ids;
	struct perf_data data;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	build_ids_free(&bench->ids);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static struct note note_of(uint8_t id)
{
	return (struct note){ { 4, 4, 3 }, "GNU", { id, id, id, id } };
}

static void put_notes(const struct bench *bench, const char *path, uint8_t id)
{
	const struct note note = note_of(id);

	fake_tree_bytes(&bench->tree, &note, sizeof(note), path);
}

static void put_program(const struct bench *bench, const char *path, uint8_t id)
{
	struct {
		Elf64_Ehdr file;
		Elf64_Phdr header;
		struct note note;
	} elf = {
		.file = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.header = { .p_type = PT_NOTE,
			    .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			    .p_filesz = sizeof(struct note) },
		.note = note_of(id),
	};

	fake_tree_bytes(&bench->tree, &elf, sizeof(elf), path);
}

/* Write a recording that has them, and read it. */
static void round_trip(struct bench *bench)
{
	static uint8_t attr[RECORDING_ATTR_SIZE] = { 8, 0, 0, 0, RECORDING_ATTR_SIZE };
	const struct recording_event event = { attr, NULL, 0, "intel_pt//" };
	struct recording_feature feature = { .number = 2 };
	struct recording_out out = { 0 };
	char path[128];
	void *data;

	(void)snprintf(path, sizeof(path), "%s/data", bench->tree.path);
	assert_int_equal(build_ids_section(&bench->ids, &data, &feature.size), 0);
	feature.data = data;
	assert_int_equal(recording_out_create(&out, path, &event, 1, NULL), 0);
	assert_int_equal(recording_out_round(&out, NULL), 0);
	assert_int_equal(recording_out_finish(&out, &feature, 1, NULL), 0);
	recording_out_close(&out);
	free(data);
	assert_int_equal(perf_data_open(path, &bench->data, NULL), 0);
	assert_int_equal(bench->data.bad_features, 0);
	assert_int_equal(bench->data.build_ids.count, bench->ids.count);
}

static void assert_id(const struct bench *bench, size_t i, uint16_t cpumode, pid_t pid,
		      const char *name, uint8_t id)
{
	const struct perf_build_id *found = &bench->data.build_ids.items[i];

	assert_true(i < bench->data.build_ids.count);
	assert_int_equal(found->cpumode, cpumode);
	assert_int_equal(found->pid, pid);
	assert_string_equal(found->filename, name);
	assert_int_equal(found->id.size, 4);
	assert_int_equal(found->id.bytes[0], id);
	assert_int_equal(found->id.bytes[3], id);
}

static void the_host_has_a_kernel_and_modules(void **state)
{
	struct bench *bench = *state;

	put_notes(bench, "sys/kernel/notes", 1);
	put_notes(bench, "sys/module/kvm/notes/.note.gnu.build-id", 2);
	fake_tree_file(&bench->tree,
		       "kvm 4096 0 - Live 0xffffffffc0000000\n"
		       "without_note 4096 0 - Live 0xffffffffc0001000\n"
		       "../../kernel/ 4096 0 - Live 0xffffffffc0001000\n",
		       "proc/modules");
	assert_int_equal(build_ids_add_host(&bench->ids, &bench->tree.roots), 0);
	round_trip(bench);
	assert_id(bench, 0, KERNEL, HOST, "[kernel.kallsyms]", 1);
	assert_id(bench, 1, KERNEL, HOST, "[kvm]", 2);
	/* What else there may be is the vDSO of the kernel that runs us. */
	assert_true(bench->ids.count <= 3);
	if (bench->ids.count == 3)
		assert_string_equal(bench->data.build_ids.items[2].filename, "[vdso]");
}

static void a_process_has_each_file_that_can_run_once(void **state)
{
	struct bench *bench = *state;
	char target[128];

	put_program(bench, "qemu", 3);
	put_program(bench, "library", 4);
	(void)snprintf(target, sizeof(target), "%s/qemu", bench->tree.path);
	fake_tree_link(&bench->tree, target, "proc/500/map_files/5700-5900");
	(void)snprintf(target, sizeof(target), "%s/library", bench->tree.path);
	fake_tree_link(&bench->tree, target, "proc/500/map_files/7000-8000");
	fake_tree_file(&bench->tree,
		       "5600-5700 r--p 00000000 fd:01 42    /usr/bin/data\n"
		       "5700-5900 r-xp 00000100 fd:01 42    /usr/bin/qemu-fake\n"
		       "5900-5a00 r-xp 00000300 fd:01 42    /usr/bin/qemu-fake\n"
		       "6000-6100 rwxp 00000000 00:00 0 \n"
		       "7000-8000 r-xp 00000000 fd:01 43    /usr/lib/fake.so (deleted)\n"
		       "8000-9000 r-xp 00000000 fd:01 44    /nonexistent\n"
		       "9000-a000 r-xp 00000000 fd:01 45    /dev/null\n",
		       "proc/500/maps");
	assert_int_equal(build_ids_add_process(&bench->ids, &bench->tree.roots, VM), 0);
	assert_int_equal(build_ids_add_process(&bench->ids, &bench->tree.roots, VM + 1), 0);
	round_trip(bench);
	assert_int_equal(bench->ids.count, 2);
	assert_id(bench, 0, USER, HOST, "/usr/bin/qemu-fake", 3);
	assert_id(bench, 1, USER, HOST, "/usr/lib/fake.so (deleted)", 4);
}

static void a_guest_has_what_was_copied(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(build_ids_add_guest(&bench->ids, VM, "05050505"), 0);
	assert_int_equal(build_ids_add_guest(&bench->ids, VM + 1, ""), 0);
	assert_int_equal(build_ids_add_guest(&bench->ids, VM + 2, "nonsense"), 0);
	round_trip(bench);
	assert_int_equal(bench->ids.count, 1);
	assert_id(bench, 0, GUEST_KERNEL, VM, "[guest.kernel.kallsyms.500]", 5);
}

static void modules_of_guests_too(void **state)
{
	struct guest_module items[] = {
		{ .name = "kvm", .path = "/lib/modules/kvm.ko", .id = { { 6, 6, 6, 6 }, 4 } },
		{ .name = "unknown" },
		{ .name = "virtio", .id = { { 7, 7, 7, 7 }, 4 } },
	};
	const struct guest_modules modules = { .items = items, .count = 3 };
	struct bench *bench = *state;

	assert_int_equal(build_ids_add_guest_modules(&bench->ids, VM, &modules), 0);
	round_trip(bench);
	assert_int_equal(bench->ids.count, 2);
	assert_id(bench, 0, GUEST_KERNEL, VM, "/lib/modules/kvm.ko", 6);
	assert_id(bench, 1, GUEST_KERNEL, VM, "[virtio]", 7);
}

static void there_is_a_limit(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < BUILD_IDS_MAX + 10; i++)
		assert_int_equal(build_ids_add_guest(&bench->ids, VM + i, "05"), 0);
	assert_int_equal(bench->ids.count, BUILD_IDS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_host_has_a_kernel_and_modules),
		TEST(a_process_has_each_file_that_can_run_once),
		TEST(a_guest_has_what_was_copied),
		TEST(modules_of_guests_too),
		TEST(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
