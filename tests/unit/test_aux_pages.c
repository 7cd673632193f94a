#include "decode/pt/aux_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"

enum { SIZE = 16 << 20, BLOCK = 64 << 10 };

/* A mapped file of ones, changed in memory only: a page that was given back is read from the file
 * again, which shows. */
static struct bytes map_file(void)
{
	_cleanup_close_ int fd = memfd_create("pages", MFD_CLOEXEC);
	uint8_t ones[4096];
	uint8_t *bytes;

	memset(ones, 1, sizeof(ones));
	for (int i = 0; i < SIZE / 4096; i++)
		assert_int_equal(write(fd, ones, sizeof(ones)), sizeof(ones));
	bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	memset(bytes, 2, SIZE);
	return (struct bytes){ bytes, SIZE };
}

static void all_pages_that_are_done_with_go(void **state)
{
	struct bytes file = map_file();
	size_t start = 4 * BLOCK - ((uintptr_t)file.data & (BLOCK - 1));

	aux_pages_release(&file, (struct bytes){ file.data + start, BLOCK + 1 });
	assert_int_equal(file.data[start - 1], 2);
	assert_int_equal(file.data[start], 1);
	assert_int_equal(file.data[start + BLOCK - 1], 1);
	assert_int_equal(file.data[start + BLOCK], 2); /* still the page that was changed */
	(void)munmap((void *)file.data, file.size);
}

static void memory_outside_of_the_mapping_is_left_alone(void **state)
{
	struct bytes file = map_file(), part = { file.data + BLOCK, BLOCK };

	aux_pages_release(&part, (struct bytes){ file.data, BLOCK });
	aux_pages_release(&part, (struct bytes){ file.data + 2 * BLOCK, BLOCK });
	aux_pages_release(&part, (struct bytes){ part.data + 100, 5000 });
	assert_int_equal(file.data[0], 2);
	assert_int_equal(file.data[BLOCK - 1], 2);
	assert_int_equal(file.data[BLOCK], 1);
	assert_int_equal(file.data[2 * BLOCK], 2);
	(void)munmap((void *)file.data, file.size);
}

static void a_stretch_of_a_queue_is_in_several_spans(void **state)
{
	struct bytes file = map_file();
	size_t start = 2 * BLOCK - ((uintptr_t)file.data & (BLOCK - 1));
	struct aux_span spans[] = {
		{ .data = file.data + start, .size = BLOCK, .position = 0 },
		{ .data = file.data + start + 4 * BLOCK, .size = BLOCK, .position = BLOCK },
		{ .data = file.data + start + 8 * BLOCK, .size = BLOCK, .position = 2 * BLOCK },
	};
	struct aux_queue queue = { .spans = spans, .count = 3, .size = (uint64_t)3 * BLOCK };

	aux_pages_release_trace(&file, &queue, BLOCK, 2 * BLOCK + BLOCK / 2);
	assert_int_equal(file.data[start], 2);
	assert_int_equal(file.data[start + 4 * BLOCK], 1);
	assert_int_equal(file.data[start + 5 * BLOCK - 1], 1);
	assert_int_equal(file.data[start + 5 * BLOCK], 2);
	assert_int_equal(file.data[start + 8 * BLOCK], 1);
	assert_int_equal(file.data[start + 8 * BLOCK + BLOCK / 2], 2);
	(void)munmap((void *)file.data, file.size);
}

/* The kernel mapped them, too, and the next span may be far away. */
static void behind_a_span_go_the_pages_around_its_end(void **state)
{
	struct bytes file = map_file();
	size_t start = 2 * BLOCK - ((uintptr_t)file.data & (BLOCK - 1));
	struct aux_span spans[] = {
		{ .data = file.data + start, .size = 100, .position = 0 },
		{ .data = file.data + SIZE - 100, .size = 100, .position = 100 },
	};
	struct aux_queue queue = { .spans = spans, .count = 2, .size = 200 };

	aux_pages_release_trace(&file, &queue, 0, 99);
	assert_int_equal(file.data[start + BLOCK - 1], 2);
	aux_pages_release_trace(&file, &queue, 0, 200);
	assert_int_equal(file.data[start], 1);
	assert_int_equal(file.data[start + BLOCK - 1], 1);
	assert_int_equal(file.data[start + BLOCK], 2);
	assert_int_equal(file.data[SIZE - 1], 1);
	(void)munmap((void *)file.data, file.size);
}

static void a_stretch_that_is_read_ahead_need_not_be_there(void **state)
{
	struct bytes file = map_file(), none = { NULL, 0 };
	struct aux_span spans[] = {
		{ .data = file.data, .size = BLOCK, .position = 0 },
		{ .data = (const uint8_t *)spans, .size = BLOCK, .position = BLOCK },
		{ .data = file.data + SIZE - BLOCK, .size = BLOCK, .position = 2 * BLOCK },
	};
	struct aux_queue queue = { .spans = spans, .count = 3, .size = (uint64_t)3 * BLOCK };

	aux_pages_prefetch_trace(&file, &queue, BLOCK / 2, 3 * BLOCK);
	aux_pages_prefetch_trace(&file, &queue, 2 * BLOCK, UINT64_MAX);
	aux_pages_prefetch_trace(&file, &queue, 3 * BLOCK, 4 * BLOCK);
	aux_pages_prefetch_trace(&none, &queue, 0, BLOCK);
	assert_int_equal(file.data[0], 2);
	assert_int_equal(file.data[SIZE - 1], 2);
	(void)munmap((void *)file.data, file.size);
}

static void a_walk_keeps_no_more_than_a_megabyte_behind_it(void **state)
{
	struct bytes file = map_file();
	struct aux_span span = { .data = file.data, .size = SIZE };
	struct aux_queue queue = { .spans = &span, .count = 1, .size = SIZE };
	uint64_t held = SIZE / 2;

	aux_pages_pass(&file, &queue, &held, held + (1 << 20) - 1);
	aux_pages_pass(&file, &queue, &held, 0);
	assert_int_equal(held, SIZE / 2);
	assert_int_equal(file.data[SIZE / 2], 2);
	aux_pages_pass(&file, &queue, &held, SIZE / 2 + (1 << 20));
	assert_int_equal(held, SIZE / 2 + (1 << 20));
	assert_int_equal(file.data[SIZE / 2], 1);
	assert_int_equal(file.data[SIZE / 4], 2);
	assert_int_equal(file.data[SIZE - 1], 2);
	(void)munmap((void *)file.data, file.size);
}

static size_t count_kept(struct bytes file)
{
	size_t kept = 0;

	for (size_t at = 0; at < file.size; at += BLOCK)
		kept += file.data[at] == 2;
	return kept;
}

static void a_trail_leaves_nothing_far_behind(void **state)
{
	struct bytes file = map_file();
	struct page_trail trail = { .mapping = &file };

	for (size_t at = 0; at < SIZE; at += 100)
		page_trail_step(&trail, file.data + at);
	assert_int_equal(file.data[0], 1);
	assert_true(count_kept(file) < SIZE / 2 / BLOCK);
	assert_int_equal(file.data[SIZE - 1], 2);
	(void)munmap((void *)file.data, file.size);
}

/* To give pages back at each leap would take more time than to read. */
static void a_trail_that_leaps_gives_back_when_much_was_read(void **state)
{
	enum { LEAP = 2 * BLOCK, OFTEN = 100 };
	struct bytes file = map_file();
	struct page_trail trail = { .mapping = &file };
	const size_t all = count_kept(file);

	for (size_t at = 0; at < SIZE / 4; at += LEAP)
		page_trail_leap(&trail, file.data + at);
	for (size_t i = 0; i < OFTEN; i++)
		page_trail_leap(&trail, file.data + SIZE / 4);
	assert_int_equal(count_kept(file), all);
	page_trail_leap(&trail, file.data); /* it does not go back */
	for (size_t at = SIZE / 4; at < SIZE; at += LEAP)
		page_trail_leap(&trail, file.data + at);
	assert_in_range(count_kept(file), 1, all / 2);
	(void)munmap((void *)file.data, file.size);
}

static void a_trail_passes_over_what_is_elsewhere(void **state)
{
	struct bytes file = map_file(), part = { file.data, SIZE / 2 }, none = { NULL, 0 };
	struct page_trail trail = { .mapping = &part }, nowhere = { .mapping = &none };

	page_trail_step(&trail, file.data + 10);
	page_trail_step(&trail, file.data + SIZE - 1);
	page_trail_step(&trail, (const uint8_t *)&part);
	page_trail_step(&nowhere, file.data + SIZE / 2);
	for (size_t at = 0; at < SIZE; at += BLOCK)
		assert_int_equal(file.data[at], 2);
	(void)munmap((void *)file.data, file.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pages_that_are_done_with_go),
		cmocka_unit_test(memory_outside_of_the_mapping_is_left_alone),
		cmocka_unit_test(a_stretch_of_a_queue_is_in_several_spans),
		cmocka_unit_test(behind_a_span_go_the_pages_around_its_end),
		cmocka_unit_test(a_stretch_that_is_read_ahead_need_not_be_there),
		cmocka_unit_test(a_walk_keeps_no_more_than_a_megabyte_behind_it),
		cmocka_unit_test(a_trail_leaves_nothing_far_behind),
		cmocka_unit_test(a_trail_that_leaps_gives_back_when_much_was_read),
		cmocka_unit_test(a_trail_passes_over_what_is_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
