#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/mapped_file.h"
#include "decode/code/elf_file.h"
#include "decode/perf/build_id.h"
#include "guest/channel_memory.h"
#include "guest/guest_copy.h"
#include "guest/guest_kernel.h"
#include "guest/output_directory.h"
#include "tests/fake_linux.h"
#include "tests/fake_modules.h"
#include "tests/fake_tree.h"

struct fixture {
	struct fake_linux guest;
	struct channel *channel;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_linux_init(&fixture->guest, false);
	assert_int_equal(channel_memory_new(&fixture->guest.memory.reader,
					    &fixture->guest.memory.root, 1, &fixture->channel,
					    NULL),
			 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	channel_free(fixture->channel);
	fake_linux_deinit(&fixture->guest);
	free(fixture);
	return 0;
}

static void assert_text(struct channel *channel, const char *path, const char *wanted)
{
	char text[65536];

	assert_true(channel_read_text(channel, path, text, sizeof(text), NULL) > 0);
	assert_non_null(strstr(text, wanted));
}

static void symbols_are_those_of_the_kernel_and_its_modules(void **state)
{
	struct fixture *fixture = *state;

	assert_text(fixture->channel, "/proc/kallsyms",
		    "0000000000001000 A per_cpu_1\n"
		    "ffffffff96000000 T _stext\n"
		    "ffffffff96000010 t fn_3\n");
	assert_text(fixture->channel, "/proc/kallsyms",
		    "ffffffff96013100 D sysctl_bootid\n"
		    "ffffffff96013200 D jiffies_64\n"
		    "ffffffffc0005000 t start\t[module_1]\n");
	assert_text(fixture->channel, "/proc/modules",
		    "module_1 12288 - - Live 0xffffffffc0005000\n"
		    "module_0 12288 - - Live 0xffffffffc0000000\n");
}

static void the_boot_has_an_id_once_it_was_asked_for(void **state)
{
	struct fixture *fixture = *state;
	const char path[] = "/proc/sys/kernel/random/boot_id";
	char text[64];

	assert_int_equal(channel_read_text(fixture->channel, path, text, sizeof(text), NULL), 0);
	for (uint8_t i = 0; i < 16; i++)
		fixture->guest.boot_id[i] = 0x11 * i;
	assert_int_equal(channel_read_text(fixture->channel, path, text, sizeof(text), NULL), 36);
	assert_string_equal(text, "00112233-4455-6677-8899-aabbccddeeff");
}

static void modules_have_build_ids(void **state)
{
	static const char path[] = "/sys/module/module_1/notes/.note.gnu.build-id";
	struct fixture *fixture = *state;
	struct build_id id;
	char text[4096];
	int size;

	assert_int_equal(channel_open(fixture->channel, path, NULL), -PTVM_NOT_FOUND);
	(void)channel_read_text(fixture->channel, "/proc/modules", text, sizeof(text), NULL);
	size = channel_read_text(fixture->channel, path, text, sizeof(text), NULL);
	assert_true(size > 0);
	assert_true(build_id_find((struct bytes){ (uint8_t *)text, (size_t)size }, &id));
	assert_int_equal(id.bytes[19], FAKE_MODULE_ID + 1);
	assert_int_equal(
		channel_open(fixture->channel, "/sys/module/module_1/sections/.text", NULL),
		-PTVM_NOT_FOUND);
}

static void other_files_are_not_there(void **state)
{
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(channel_open(fixture->channel, "/proc/stat", &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "/proc/stat: cannot be made of the guest's memory");
}

static int copy_to(struct fixture *fixture, const struct output_directory *directory,
		   struct guest_facts *ret, struct ptvm_error *error)
{
	struct guest_copy copy;
	int r;

	guest_copy_init(&copy, fixture->channel, directory, "vm");
	do {
		r = guest_copy_next(&copy, error);
	} while (r > 0);
	*ret = copy.facts;
	guest_copy_free(&copy);
	return r;
}

static void assert_code(const char *path)
{
	struct elf_file elf;
	struct bytes bytes;
	const struct elf_segment *kernel, *modules;

	assert_int_equal(mapped_file_open(path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read(path, bytes, &elf, NULL), 0);
	assert_int_equal(elf.segments.count, 2);
	kernel = &elf.segments.items[0];
	modules = &elf.segments.items[1];
	assert_int_equal(kernel->address, FAKE_LINUX_START);
	assert_int_equal(kernel->size, 0x4000); /* no further than _etext */
	for (uint64_t at = 0; at < kernel->size; at++)
		assert_int_equal(bytes.data[kernel->offset + at],
				 fake_linux_byte(FAKE_LINUX_START + at));
	assert_int_equal(modules->address, FAKE_LINUX_MODULES);
	assert_int_equal(modules->size, 0x6000);
	assert_int_equal(bytes.data[modules->offset], 0xcc);
	assert_int_equal(bytes.data[modules->offset + 0x5000], 0xcc);
	for (uint64_t at = 0x1000; at < 0x5000; at++) /* no data of modules */
		assert_int_equal(bytes.data[modules->offset + at], 0);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
}

static void the_copy_has_all_code_and_nothing_else(void **state)
{
	struct fixture *fixture = *state;
	struct output_directory directory;
	struct guest_facts facts;
	struct fake_tree tree;
	char path[PATH_MAX];

	fake_tree_init(&tree);
	(void)snprintf(path, sizeof(path), "%s/copy", tree.path);
	assert_int_equal(output_directory_make(path, &directory, NULL), 0);
	assert_int_equal(copy_to(fixture, &directory, &facts, NULL), 0);
	assert_code(output_directory_file(&directory, "kcore", path));
	assert_string_equal(facts.release.value, "6.1.0-fake");
	assert_string_equal(facts.build_id.value, "abcd");
	assert_string_equal(facts.kaslr_offset.value, "0x15000000");
	assert_null(facts.boot_time.from);
	output_directory_drop(&directory);
	fake_tree_deinit(&tree);
}

static void code_that_has_no_symbols_is_copied(void **state)
{
	struct fixture *fixture = *state;
	uint8_t head[KCORE_HEAD_BYTES];
	struct kcore_head kcore;
	char byte;

	(void)fake_memory_put(&fixture->guest.memory, FAKE_LINUX_MODULES + 0x100000, "J", 1, 0);
	assert_int_equal(channel_open(fixture->channel, "/proc/kcore", NULL), 0);
	assert_int_equal(channel_read(fixture->channel, 0, head, sizeof(head), NULL), sizeof(head));
	assert_int_equal(kcore_head_read((struct bytes){ head, sizeof(head) }, &kcore, NULL), 0);
	assert_int_equal(kcore.segments.count, 3);
	assert_int_equal(kcore.segments.items[2].address, FAKE_LINUX_MODULES + 0x100000);
	assert_int_equal(
		channel_read(fixture->channel, kcore.segments.items[2].offset, &byte, 1, NULL), 1);
	assert_int_equal(byte, 'J');
	kcore_head_free(&kcore);
}

static void memory_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct ptvm_error error = { 0 };
	char byte;

	assert_int_equal(channel_open(fixture->channel, "/proc/kcore", NULL), 0);
	fixture->guest.memory.fails = true;
	assert_int_equal(channel_read(fixture->channel, KCORE_HEAD_BYTES, &byte, 1, &error),
			 -PTVM_SYSTEM);
	assert_int_equal(channel_open(fixture->channel, "/proc/modules", NULL), -PTVM_SYSTEM);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(symbols_are_those_of_the_kernel_and_its_modules),
		WITH_FIXTURE(the_boot_has_an_id_once_it_was_asked_for),
		WITH_FIXTURE(modules_have_build_ids),
		WITH_FIXTURE(other_files_are_not_there),
		WITH_FIXTURE(the_copy_has_all_code_and_nothing_else),
		WITH_FIXTURE(code_that_has_no_symbols_is_copied),
		WITH_FIXTURE(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
