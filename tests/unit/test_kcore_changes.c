#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/mapped_file.h"
#include "decode/code/elf_file.h"
#include "guest/kcore_changes.h"
#include "guest/kcore_copy.h"
#include "tests/elf_make.h"
#include "tests/two_copies.h"

enum { PAGE = 4096, SCATTERED = 2 * KCORE_COPY_PIECES + 20 };

static const uint64_t text = 0xffffffff81000000;

/* A copy of one segment, of which each `step`-th page (0: none) is filled with ones. */
static void put_copy(const struct two_copies *copies, const char *name, size_t pages, size_t step)
{
	uint8_t *file = calloc(pages + 1, PAGE), *bytes = calloc(pages, PAGE);
	const struct elf_make_segment segment = { text, bytes, pages * PAGE };

	assert_true(file && bytes);
	for (size_t i = 0; step && i < pages; i += step)
		memset(bytes + i * PAGE, 1, PAGE);
	fake_tree_bytes(&copies->tree, file, elf_make(&segment, 1, file), name);
	free(bytes);
	free(file);
}

static void scattered_changes_are_kept_up_to_a_limit(void **state)
{
	struct two_copies *copies = *state;
	struct kcore_changes changes;
	struct bytes bytes;
	struct elf_file elf;

	put_copy(copies, "before/kcore", SCATTERED, 0);
	put_copy(copies, "after/kcore", SCATTERED, 2);
	assert_int_equal(
		kcore_changes_write(copies->before, copies->after, copies->path, &changes, NULL),
		0);
	assert_int_equal(changes.changed, SCATTERED / 2);
	assert_int_equal(changes.left_out, SCATTERED / 2 - KCORE_COPY_PIECES);
	assert_int_equal(mapped_file_open(copies->path, &bytes, NULL), 0);
	assert_int_equal(elf_file_read("changes", bytes, &elf, NULL), 0);
	assert_int_equal(elf.segments.count, KCORE_COPY_PIECES);
	assert_int_equal(elf.segments.items[1].address, text + 2 * PAGE);
	assert_int_equal(bytes.data[elf.segments.items[KCORE_COPY_PIECES - 1].offset], 1);
	elf_file_close(&elf);
	mapped_file_close(&bytes);
}

static void a_shorter_copy_has_lost_pages(void **state)
{
	struct two_copies *copies = *state;
	struct kcore_changes changes;

	put_copy(copies, "before/kcore", 5, 0);
	put_copy(copies, "after/kcore", 3, 0);
	assert_int_equal(
		kcore_changes_write(copies->before, copies->after, copies->path, &changes, NULL),
		0);
	assert_int_equal(changes.gone, 2);
	assert_int_equal(changes.changed + changes.added, 0);
	assert_int_not_equal(access(copies->path, F_OK), 0);
}

static void what_is_no_copy_is_refused(void **state)
{
	struct two_copies *copies = *state;
	struct kcore_changes changes;

	put_copy(copies, "before/kcore", 5, 0);
	assert_int_equal(
		kcore_changes_write(copies->before, copies->after, copies->path, &changes, NULL),
		-PTVM_SYSTEM);
	fake_tree_file(&copies->tree, "no ELF", "after/kcore");
	assert_int_equal(
		kcore_changes_write(copies->before, copies->after, copies->path, &changes, NULL),
		-PTVM_BAD_INPUT);
}

static void a_file_in_the_way_stays(void **state)
{
	struct two_copies *copies = *state;
	struct kcore_changes changes;

	put_copy(copies, "before/kcore", 5, 0);
	put_copy(copies, "after/kcore", 5, 1);
	fake_tree_file(&copies->tree, "mine", "changes");
	assert_int_equal(
		kcore_changes_write(copies->before, copies->after, copies->path, &changes, NULL),
		-PTVM_SYSTEM);
	assert_int_equal(access(copies->path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_copies_set_up, two_copies_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scattered_changes_are_kept_up_to_a_limit),
		TEST(a_shorter_copy_has_lost_pages),
		TEST(what_is_no_copy_is_refused),
		TEST(a_file_in_the_way_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
