#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/mapped_file.h"
#include "decode/code/elf_file.h"
#include "guest/channel_mount.h"
#include "guest/kernel_copy.h"
#include "tests/fake_guest.h"

enum { VM = 500, PAGE = 4096, KERNEL_AT = 0x10000 };

struct bench {
	struct fake_tree tree;
	struct channel *channel;
	struct kernel_copy kernel;
	char recording[128];
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_guest_init(&bench.tree);
	fake_tree_file(&bench.tree, "", "recording/data");
	(void)snprintf(bench.recording, sizeof(bench.recording), "%s/recording", bench.tree.path);
	assert_int_equal(channel_mount_new(bench.tree.path, &bench.channel, NULL), 0);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	kernel_copy_free(&bench->kernel);
	channel_free(bench->channel);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static int go_on(struct bench *bench, struct ptvm_error *error)
{
	int r;

	do {
		r = kernel_copy_next(&bench->kernel, error);
	} while (r > 0);
	return r;
}

static void copy_first(struct bench *bench, pid_t pid)
{
	assert_int_equal(kernel_copy_begin(&bench->kernel, bench->channel, bench->recording, pid,
					   "vm", NULL),
			 0);
	assert_int_equal(go_on(bench, NULL), 0);
}

static void copy_again(struct bench *bench)
{
	assert_int_equal(kernel_copy_again(&bench->kernel, bench->channel, NULL), 0);
	assert_int_equal(go_on(bench, NULL), 0);
}

/* The status of a file of the recording. */
static int look(const struct bench *bench, const char *name, struct stat *ret)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", bench->recording, name);
	return lstat(path, ret);
}

static void assert_private(const struct bench *bench, const char *name, mode_t mode)
{
	struct stat status;

	assert_int_equal(look(bench, name, &status), 0);
	assert_int_equal(status.st_mode & 0777, mode);
}

/* Names in the recording beside `data`. */
static nlink_t count_directories(const struct bench *bench)
{
	struct stat status;

	assert_int_equal(look(bench, ".", &status), 0);
	return status.st_nlink - 2;
}

/* Patch the running kernel. */
static void patch(const struct bench *bench, uint64_t offset)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/proc/kcore", bench->tree.path);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "\xcc\xcc\xcc", 3, KERNEL_AT + (off_t)offset), 3);
	assert_int_equal(close(fd), 0);
}

static void a_guest_has_what_perf_looks_for(void **state)
{
	struct bench *bench = *state;
	struct stat status;

	copy_first(bench, VM);
	assert_private(bench, "kcore_dir__500", 0700);
	assert_private(bench, "kcore_dir__500/kcore", 0600);
	assert_private(bench, "kcore_dir__500/kallsyms", 0600);
	assert_private(bench, "kcore_dir__500/modules", 0600);
	assert_int_not_equal(look(bench, "kcore_dir__500/guest.json", &status), 0);
	assert_int_equal(count_directories(bench), 1);
	assert_string_equal(bench->kernel.release, "6.1.0-fake");
	assert_string_equal(json_string_value(json_object_get(bench->kernel.json, "domain")), "vm");
	assert_true(bench->kernel.code_bytes >= FAKE_GUEST_TEXT_BYTES);
}

static void assert_virtio(const struct bench *bench)
{
	json_t *virtio = json_array_get(json_object_get(bench->kernel.json, "module_files"), 0);
	json_t *sections = json_object_get(virtio, "sections");

	assert_string_equal(json_string_value(json_object_get(virtio, "name")), "virtio");
	assert_string_equal(json_string_value(json_object_get(virtio, "path")),
			    "/lib/modules/6.1.0-fake/kernel/drivers/virtio/virtio.ko.xz");
	assert_string_equal(json_string_value(json_object_get(virtio, "build_id")), "0102");
	assert_int_equal(json_integer_value(json_object_get(sections, ".data")), 0x2000);
	assert_non_null(guest_modules_find(&bench->kernel.modules, "virtio"));
}

static void files_and_sections_of_modules_are_told(void **state)
{
	static const uint8_t note[] = { 4, 0, 0,   0,   2,   0, 0, 0, 3, 0,
					0, 0, 'G', 'N', 'U', 0, 1, 2, 0, 0 };
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "kernel/drivers/virtio/virtio.ko.xz:\n",
		       "usr/lib/modules/6.1.0-fake/modules.dep");
	fake_tree_bytes(&bench->tree, note, sizeof(note),
			"sys/module/virtio/notes/.note.gnu.build-id");
	fake_tree_file(&bench->tree, "0xffffffffc0535000\n", "sys/module/virtio/sections/.data");
	copy_first(bench, VM);
	assert_virtio(bench);
	copy_again(bench);
	assert_virtio(bench);
	kernel_copy_free(&bench->kernel);
	copy_first(bench, 0);
	assert_virtio(bench);
}

static void the_host_is_copied_alike(void **state)
{
	struct bench *bench = *state;

	copy_first(bench, 0);
	assert_private(bench, "kcore_dir", 0700);
	assert_private(bench, "kcore_dir/kcore", 0600);
}

static void a_failure_leaves_nothing(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/proc/kcore", bench->tree.path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(
		kernel_copy_begin(&bench->kernel, bench->channel, bench->recording, 0, NULL, NULL),
		0);
	assert_int_equal(go_on(bench, &error), -PTVM_NOT_FOUND);
	assert_ptr_equal(strstr(error.message, path), error.message);
	assert_non_null(strstr(error.message, "/proc/kcore: No such file or directory"));
	assert_int_equal(count_directories(bench), 0);
}

static void what_is_not_complete_is_removed(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		kernel_copy_begin(&bench->kernel, bench->channel, bench->recording, VM, NULL, NULL),
		0);
	assert_int_equal(kernel_copy_next(&bench->kernel, NULL), 1);
	kernel_copy_free(&bench->kernel);
	assert_int_equal(count_directories(bench), 0);
}

static void code_that_stays_leaves_no_second_copy(void **state)
{
	struct bench *bench = *state;
	struct stat status;

	copy_first(bench, VM);
	copy_again(bench);
	assert_int_equal(bench->kernel.changes.changed, 0);
	assert_int_equal(bench->kernel.changes.added, 0);
	assert_int_equal(bench->kernel.changes.gone, 0);
	assert_string_equal(bench->kernel.changes_path, "");
	assert_int_not_equal(look(bench, "data.ptvm-kcore__500", &status), 0);
	assert_int_not_equal(look(bench, "data.ptvm-kallsyms__500", &status), 0);
	assert_int_equal(count_directories(bench), 1);
}

/* Its kernel may be another one, and be elsewhere. */
static void what_was_booted_again_is_told(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	fake_tree_file(&bench->tree, "11111111-aaaa\n", "proc/sys/kernel/random/boot_id");
	copy_first(bench, VM);
	copy_again(bench);
	patch(bench, 0x9000);
	fake_tree_file(&bench->tree, "22222222-bbbb\n", "proc/sys/kernel/random/boot_id");
	assert_int_equal(kernel_copy_again(&bench->kernel, bench->channel, NULL), 0);
	assert_int_equal(go_on(bench, &error), -PTVM_INCONSISTENT);
	assert_non_null(strstr(error.message, "booted again"));
	assert_int_equal(count_directories(bench), 1);
}

static void assert_segment(const struct elf_file *elf, size_t i, uint64_t address, uint64_t size)
{
	assert_int_equal(elf->segments.items[i].address, address);
	assert_int_equal(elf->segments.items[i].size, size);
}

/* A boot that nobody asked for its id has none. */
static void what_was_booted_again_is_told_by_where_it_is(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	copy_first(bench, VM);
	fake_tree_file(&bench->tree,
		       "ffffffff96001000 T _stext\nffffffff96001000 T _text\n"
		       "ffffffff96180123 T _etext\nffffffffc0533010 t virtio_probe\t[virtio]\n"
		       "ffffffff961a0000 B _end\n",
		       "proc/kallsyms");
	assert_int_equal(kernel_copy_again(&bench->kernel, bench->channel, NULL), 0);
	assert_int_equal(go_on(bench, &error), -PTVM_INCONSISTENT);
	assert_non_null(strstr(error.message, "booted again"));
}

static void pages_that_changed_are_kept(void **state)
{
	struct bench *bench = *state;
	struct bytes bytes;
	struct elf_file elf;
	json_t *pages;

	copy_first(bench, VM);
	patch(bench, 0x5ffe); /* in the last bytes of a page and the first of the next */
	patch(bench, 0x9000);
	fake_tree_file(&bench->tree, "late 8192 0 - Live 0xffffffffc0536000\n", "proc/modules");
	fake_tree_file(&bench->tree,
		       "ffffffff96000000 T _stext\nffffffff96000000 T _text\n"
		       "ffffffff96180123 T _etext\nffffffffc0533010 t virtio_probe\t[virtio]\n"
		       "ffffffff961a0000 B _end\n"
		       "ffffffffc0536010 t late_probe\t[late]\n"
		       "ffffffffc0550020 t bpf_prog_6deef7357e7b4530\t[bpf]\n",
		       "proc/kallsyms");
	copy_again(bench);
	assert_int_equal(bench->kernel.changes.changed, 3);
	assert_int_equal(bench->kernel.changes.added, 2);
	/* Memory between code is copied, too, with the module that was removed. */
	assert_int_equal(bench->kernel.changes.gone, 0);
	assert_private(bench, "data.ptvm-kcore__500", 0600);
	assert_private(bench, "data.ptvm-kallsyms__500", 0600);
	assert_int_equal(mapped_file_open(bench->kernel.changes_path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read("changes", bytes, &elf, NULL), 0);
	assert_int_equal(elf.segments.count, 3);
	assert_segment(&elf, 0, FAKE_GUEST_KERNEL + 0x5000, 2 * PAGE);
	assert_segment(&elf, 1, FAKE_GUEST_KERNEL + 0x9000, PAGE);
	assert_segment(&elf, 2, 0xffffffffc0536000, 2 * PAGE);
	assert_memory_equal(bytes.data + elf.segments.items[0].offset + 0xffe, "\xcc\xcc\xcc", 3);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
	pages = json_object_get(bench->kernel.json, "pages_at_end");
	assert_int_equal(json_integer_value(json_object_get(pages, "changed")), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_guest_has_what_perf_looks_for),
		TEST(files_and_sections_of_modules_are_told),
		TEST(the_host_is_copied_alike),
		TEST(a_failure_leaves_nothing),
		TEST(what_is_not_complete_is_removed),
		TEST(code_that_stays_leaves_no_second_copy),
		TEST(what_was_booted_again_is_told),
		TEST(what_was_booted_again_is_told_by_where_it_is),
		TEST(pages_that_changed_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
