#include "guest/kcore_copy.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/mapped_file.h"
#include "decode/base/vec.h"
#include "decode/code/elf_file.h"
#include "guest/channel.h"
#include "guest/code_ranges.h"
#include "guest/kcore_head.h"
#include "tests/fake_tree.h"

static const uint64_t kernel = 0xffffffff96000000;

enum { PAGE = 4096 };

/* A guest's file that has the same bytes at every offset, to its end. */
struct file {
	struct channel channel;
	uint64_t end;
	bool fails;
};

static struct fixture {
	struct fake_tree tree;
	struct file file;
	struct kcore_head head;
	struct code_ranges ranges;
	struct kcore_copy copy;
	struct ptvm_error error;
	char path[PATH_MAX];
} fixture;

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset ^ offset >> 8 ^ offset >> 16);
}

static int file_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	return 0;
}

static int file_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		     struct ptvm_error *error)
{
	const struct file *file = (const struct file *)channel;

	if (file->fails)
		return ptvm_fail(error, PTVM_SYSTEM, "the guest is gone");
	if (offset >= file->end)
		return 0;
	size = size < file->end - offset ? size : file->end - offset;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = byte_at(offset + i);
	return (int)size;
}

static void file_close(struct channel *channel)
{
}

static int set_up(void **state)
{
	static const struct channel_way way = {
		.name = "test", .open = file_open, .read = file_read, .close = file_close
	};

	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.path, sizeof(fixture.path), "%s/kcore", fixture.tree.path);
	channel_init(&fixture.file.channel, &way);
	assert_int_equal(channel_open(&fixture.file.channel, "/proc/kcore", NULL), 0);
	fixture.file.end = UINT64_MAX;
	fixture.ranges.kernel_start = kernel;
	fixture.copy.file = -1;
	return 0;
}

static int tear_down(void **state)
{
	kcore_copy_free(&fixture.copy);
	vec_free(&fixture.head.segments);
	vec_free(&fixture.ranges);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static void add_segment(uint64_t address, uint64_t offset, uint64_t size)
{
	assert_true(
		vec_push(&fixture.head.segments, (struct kcore_segment){ address, offset, size }));
}

static void add_range(uint64_t start, uint64_t size)
{
	assert_true(vec_push(&fixture.ranges, (struct code_range){ start, start + size }));
}

static int plan(void)
{
	return kcore_copy_plan(&fixture.head, &fixture.ranges, &fixture.copy, &fixture.error);
}

static void assert_piece(size_t i, uint64_t address, uint64_t size, uint64_t from)
{
	const struct kcore_piece *piece = &fixture.copy.pieces.items[i];

	assert_int_equal(piece->address, address);
	assert_int_equal(piece->size, size);
	assert_int_equal(piece->from, from);
}

static int create(void)
{
	return kcore_copy_create(&fixture.copy, fixture.path, &fixture.error);
}

static int next(void)
{
	return kcore_copy_next(&fixture.copy, &fixture.file.channel, &fixture.error);
}

static void pieces_are_what_segments_have_of_ranges(void **state)
{
	add_segment(kernel - 8 * PAGE, 0x10000, 16 * PAGE);
	add_segment(kernel + 20 * PAGE, 0x90000, 4 * PAGE);
	add_segment(kernel + 24 * PAGE, 0x80000, 4 * PAGE);
	add_range(kernel - 16 * PAGE, PAGE);     /* before the first segment */
	add_range(kernel, 2 * PAGE);             /* in the middle of it */
	add_range(kernel + 7 * PAGE, 14 * PAGE); /* its end, and the beginning of the next */
	add_range(kernel + 23 * PAGE, 2 * PAGE); /* one in two places of the file */
	add_range(kernel + 28 * PAGE, PAGE);     /* behind the last one */
	assert_int_equal(plan(), 0);
	assert_int_equal(fixture.copy.pieces.count, 5);
	assert_piece(0, kernel, 2 * PAGE, 0x10000 + 8 * PAGE);
	assert_piece(1, kernel + 7 * PAGE, PAGE, 0x10000 + 15 * PAGE);
	assert_piece(2, kernel + 20 * PAGE, PAGE, 0x90000);
	assert_piece(3, kernel + 23 * PAGE, PAGE, 0x90000 + 3 * PAGE);
	assert_piece(4, kernel + 24 * PAGE, PAGE, 0x80000);
	assert_int_equal(fixture.copy.total, 6 * PAGE);
	assert_int_equal(fixture.copy.done, 0);
}

static void assert_no_text(void)
{
	assert_int_equal(plan(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message,
			    "/proc/kcore: no kernel text at 0xffffffff96000000");
	kcore_copy_free(&fixture.copy);
}

static void a_file_without_the_kernel_is_refused(void **state)
{
	assert_no_text();
	add_segment(kernel + PAGE, 0x1000, 16 * PAGE);
	assert_no_text();
	add_range(kernel - PAGE, 4 * PAGE);
	assert_no_text();
	add_segment(kernel - PAGE, 0x20000, PAGE);
	assert_no_text();
	add_segment(kernel, 0x30000, 1);
	assert_int_equal(plan(), 0);
}

static void code_has_a_limit(void **state)
{
	add_segment(kernel, 0x1000, 2 * (uint64_t)KCORE_COPY_BYTES);
	add_range(kernel, PAGE);
	add_range(kernel + 2 * PAGE, KCORE_COPY_BYTES - PAGE);
	assert_int_equal(plan(), 0);
	kcore_copy_free(&fixture.copy);
	fixture.ranges.items[1].end += PAGE;
	assert_int_equal(plan(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message,
			    "/proc/kcore: more than 256 MiB of code (at 0xffffffff96002000)");
}

static void pieces_have_a_limit(void **state)
{
	add_segment(kernel, 0x1000, (uint64_t)1 << 30);
	for (uint64_t i = 0; i < KCORE_COPY_PIECES; i++)
		add_range(kernel + 2 * i * PAGE, PAGE);
	assert_int_equal(plan(), 0);
	assert_int_equal(fixture.copy.pieces.count, KCORE_COPY_PIECES);
	kcore_copy_free(&fixture.copy);
	add_range(kernel + ((uint64_t)1 << 29), PAGE);
	assert_int_equal(plan(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "/proc/kcore: more than 4096 pieces of code");
}

/* Segments that overlap may name the same code again and again. */
static void overlapping_segments_do_not_get_around_the_limits(void **state)
{
	for (int i = 0; i < 3; i++)
		add_segment(kernel, 0x1000, KCORE_COPY_BYTES / 2);
	add_range(kernel, KCORE_COPY_BYTES / 2);
	assert_int_equal(plan(), -PTVM_BAD_INPUT);
}

static void a_file_that_is_there_is_not_overwritten(void **state)
{
	add_segment(kernel, 0x1000, PAGE);
	add_range(kernel, PAGE);
	assert_int_equal(plan(), 0);
	fake_tree_file(&fixture.tree, "mine", "kcore");
	assert_int_equal(create(), -PTVM_SYSTEM);
	assert_int_equal(fixture.error.sys_errno, EEXIST);
	assert_int_equal(strncmp(fixture.error.message, fixture.path, strlen(fixture.path)), 0);
}

static void copy_all(void)
{
	int r;

	assert_int_equal(plan(), 0);
	assert_int_equal(create(), 0);
	do {
		r = next();
	} while (r > 0);
	assert_int_equal(r, 0);
	assert_int_equal(fixture.copy.done, fixture.copy.total);
}

static void assert_segment(const struct elf_file *elf, size_t i, uint64_t from)
{
	const struct elf_segment *segment = &elf->segments.items[i];

	assert_int_equal(segment->address, fixture.copy.pieces.items[i].address);
	assert_int_equal(segment->size, fixture.copy.pieces.items[i].size);
	assert_int_equal(segment->offset % PAGE, 0);
	for (uint64_t at = 0; at < segment->size; at++)
		if (elf->bytes.data[segment->offset + at] != byte_at(from + at))
			fail_msg("byte %zu of segment %zu differs", (size_t)at, i);
}

static void the_copy_is_a_core_file_of_the_pieces(void **state)
{
	struct elf_file elf;
	struct bytes bytes;
	struct stat status;

	add_segment(kernel, 0x7fff96000000, CHANNEL_READ_BYTES + 3 * PAGE);
	add_segment(kernel + ((uint64_t)1 << 30), 0x12345, 1);
	add_range(kernel, CHANNEL_READ_BYTES + 2 * PAGE);
	add_range(kernel + ((uint64_t)1 << 30), PAGE);
	copy_all();
	assert_int_equal(stat(fixture.path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(mapped_file_open(fixture.path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read("kcore", bytes, &elf, NULL), 0);
	assert_int_equal(elf.type, ET_CORE);
	assert_int_equal(elf.segments.count, 2);
	assert_segment(&elf, 0, 0x7fff96000000);
	assert_segment(&elf, 1, 0x12345);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
}

/* They take more than a page then. */
static void many_headers_have_room(void **state)
{
	struct elf_file elf;
	struct bytes bytes;

	add_segment(kernel, 0x1000, (uint64_t)1 << 30);
	for (uint64_t i = 0; i < 100; i++)
		add_range(kernel + 2 * i * PAGE, PAGE);
	copy_all();
	assert_int_equal(mapped_file_open(fixture.path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read("kcore", bytes, &elf, NULL), 0);
	assert_int_equal(elf.segments.count, 100);
	for (size_t i = 0; i < 100; i++)
		assert_segment(&elf, i, 0x1000 + 2 * i * PAGE);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
}

static void it_goes_by_steps(void **state)
{
	add_segment(kernel, 0x1000, (uint64_t)1 << 30);
	add_range(kernel, 2 * CHANNEL_READ_BYTES + PAGE);
	add_range(kernel + ((uint64_t)1 << 28), PAGE);
	assert_int_equal(plan(), 0);
	assert_int_equal(create(), 0);
	assert_int_equal(next(), 1);
	assert_int_equal(fixture.copy.done, CHANNEL_READ_BYTES);
	assert_int_equal(next(), 1);
	assert_int_equal(fixture.copy.done, 2 * CHANNEL_READ_BYTES);
	assert_int_equal(next(), 1);
	assert_int_equal(fixture.copy.done, 2 * CHANNEL_READ_BYTES + PAGE);
	assert_int_equal(next(), 0);
	assert_int_equal(fixture.copy.done, fixture.copy.total);
}

static void a_file_that_ends_too_early_is_refused(void **state)
{
	add_segment(kernel, 0x1000, 4 * PAGE);
	add_range(kernel, 4 * PAGE);
	fixture.file.end = 0x1000 + 4 * PAGE - 1;
	assert_int_equal(plan(), 0);
	assert_int_equal(create(), 0);
	assert_int_equal(next(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "/proc/kcore: ends before 0x5000");
}

static void a_guest_that_is_gone_is_told(void **state)
{
	add_segment(kernel, 0x1000, PAGE);
	add_range(kernel, PAGE);
	assert_int_equal(plan(), 0);
	assert_int_equal(create(), 0);
	fixture.file.fails = true;
	assert_int_equal(next(), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "the guest is gone");
}

/* Where a file can have no more than `size` bytes. */
static void on_a_disk_of(uint64_t size, int (*step)(void))
{
	struct rlimit limit, before;
	int r;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ size, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	r = step();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message,
			    "cannot write the copy of kcore: File too large");
}

static void a_full_disk_is_told(void **state)
{
	add_segment(kernel, 0x1000, 4 * PAGE);
	add_range(kernel, 4 * PAGE);
	assert_int_equal(plan(), 0);
	on_a_disk_of(sizeof(Elf64_Ehdr) + 1, create);
	kcore_copy_free(&fixture.copy);
	assert_int_equal(unlink(fixture.path), 0);
	assert_int_equal(plan(), 0);
	assert_int_equal(create(), 0);
	fixture.error = (struct ptvm_error){ 0 };
	on_a_disk_of(2 * PAGE, next);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_are_what_segments_have_of_ranges),
		TEST(a_file_without_the_kernel_is_refused),
		TEST(code_has_a_limit),
		TEST(pieces_have_a_limit),
		TEST(overlapping_segments_do_not_get_around_the_limits),
		TEST(a_file_that_is_there_is_not_overwritten),
		TEST(the_copy_is_a_core_file_of_the_pieces),
		TEST(many_headers_have_room),
		TEST(it_goes_by_steps),
		TEST(a_file_that_ends_too_early_is_refused),
		TEST(a_guest_that_is_gone_is_told),
		TEST(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
