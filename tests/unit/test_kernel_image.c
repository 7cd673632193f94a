#include "guest/kernel_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_memory.h"

static const uint64_t start = 0xffffffff96000000;

enum { PAGE = FAKE_MEMORY_PAGE, LARGE_PAGE = 2 << 20, FAR = 16 << 20 };

static struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
	struct kernel_image image;
	struct ptvm_error error;
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_memory_init(&fixture.memory, 64 * PAGE, false);
	page_walk_init(&fixture.walk, &fixture.memory.reader, fixture.memory.root);
	return 0;
}

static int tear_down(void **state)
{
	kernel_image_free(&fixture.image);
	fake_memory_deinit(&fixture.memory);
	return 0;
}

static void put(uint64_t address, const char *text, uint64_t rights)
{
	(void)fake_memory_put(&fixture.memory, address, text, strlen(text), rights);
}

/* Large pages without memory behind them. */
static void map_large(uint64_t address, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*fake_memory_entry(&fixture.memory, address + i * LARGE_PAGE, 2) =
			((uint64_t)1 << 40 | i * LARGE_PAGE) | FAKE_MEMORY_LARGE | 1;
}

static int read_image(void)
{
	return kernel_image_read(&fixture.walk, &fixture.image, &fixture.error);
}

static void assert_image(uint64_t address, uint64_t size)
{
	assert_int_equal(read_image(), 0);
	assert_int_equal(fixture.image.address, address);
	assert_int_equal(fixture.image.bytes.size, size);
	assert_ptr_equal(fixture.image.bytes.data, fixture.image.data);
}

static void holes_are_zero(void **state)
{
	put(start, "text", 0);
	put(start + 3 * PAGE, "data", FAKE_MEMORY_DATA);
	assert_image(start, 4 * PAGE);
	assert_string_equal((char *)fixture.image.data, "text");
	for (size_t at = PAGE; at < 3 * PAGE; at++)
		assert_int_equal(fixture.image.data[at], 0);
	assert_string_equal((char *)fixture.image.data + 3 * PAGE, "data");
}

static void a_large_hole_ends_it(void **state)
{
	put(start, "x", 0);
	put(start + FAR, "y", 0); /* the hole is a page less */
	put(start + 2 * FAR + PAGE, "module", 0);
	put(start + 2 * FAR + 2 * PAGE, "module", 0);
	assert_image(start, FAR + PAGE);
	assert_int_equal(fixture.image.data[FAR], 'y');
}

static void pages_of_users_are_not_the_kernels(void **state)
{
	put(start - 8 * PAGE, "before", FAKE_MEMORY_USER);
	put(start, "x", 0);
	put(start + PAGE, "secret", FAKE_MEMORY_USER);
	put(start + 2 * PAGE, "y", 0);
	put(start + 3 * PAGE, "after", FAKE_MEMORY_USER);
	assert_image(start, 3 * PAGE);
}

static void only_where_linux_maps_it_is_looked(void **state)
{
	put(0xffffffff00000000, "below", 0);
	put(kernel_image_limit, "above", 0);
	put(0x400000, "program", 0);
	assert_int_equal(read_image(), -PTVM_NOT_FOUND);
	assert_non_null(strstr(fixture.error.message, "no kernel of Linux"));
	put(kernel_image_first, "first", 0);
	page_walk_forget(&fixture.walk);
	assert_image(kernel_image_first, PAGE);
}

static void the_last_page_counts(void **state)
{
	put(kernel_image_limit - PAGE, "last", 0);
	assert_image(kernel_image_limit - PAGE, PAGE);
}

/* One that was placed as high as may be: the hole between them is small, or there is none. */
static void modules_right_behind_it_are_not_part_of_it(void **state)
{
	put(kernel_image_limit - 3 * PAGE, "text", 0);
	put(kernel_image_limit - 2 * PAGE, "data", FAKE_MEMORY_DATA);
	put(kernel_image_limit + PAGE, "module", 0);
	assert_image(kernel_image_limit - 3 * PAGE, 2 * PAGE);
	kernel_image_free(&fixture.image);
	put(kernel_image_limit - PAGE, "bss", FAKE_MEMORY_DATA);
	put(kernel_image_limit, "module", 0);
	page_walk_forget(&fixture.walk);
	assert_image(kernel_image_limit - 3 * PAGE, 3 * PAGE);
}

static void the_largest_image_is_read(void **state)
{
	map_large(start, KERNEL_IMAGE_BYTES / LARGE_PAGE);
	assert_image(start, KERNEL_IMAGE_BYTES);
}

static void a_larger_one_is_refused(void **state)
{
	map_large(start, KERNEL_IMAGE_BYTES / LARGE_PAGE);
	put(start + KERNEL_IMAGE_BYTES, "x", 0);
	assert_int_equal(read_image(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "the guest's kernel is larger than 256 MiB");
}

static void all_that_is_mapped_is_measured(void **state)
{
	uint64_t size = 77;

	assert_int_equal(kernel_image_measure(&fixture.walk, &size, NULL), 0);
	assert_int_equal(size, 0);
	put(start, "x", 0);
	put(start + PAGE, "x", FAKE_MEMORY_USER);
	put(start + 4 * FAR, "module", 0);
	put(0xffffffff00000000, "below", 0);
	map_large(start + 8 * FAR, 2);
	page_walk_forget(&fixture.walk);
	assert_int_equal(kernel_image_measure(&fixture.walk, &size, NULL), 0);
	assert_int_equal(size, 2 * PAGE + 2 * LARGE_PAGE);
}

static void memory_that_fails_is_told(void **state)
{
	uint64_t size;

	put(start, "x", 0);
	fixture.memory.fails = true;
	memset(&fixture.image, 0xff, sizeof(fixture.image));
	assert_int_equal(read_image(), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "no memory any more");
	assert_int_equal(kernel_image_measure(&fixture.walk, &size, NULL), -PTVM_SYSTEM);
}

static void an_image_is_freed_at_any_time(void **state)
{
	put(start, "x", 0);
	assert_int_equal(read_image(), 0);
	kernel_image_free(&fixture.image);
	assert_null(fixture.image.data);
	assert_int_equal(fixture.image.bytes.size, 0);
	kernel_image_free(&fixture.image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(holes_are_zero),
		TEST(a_large_hole_ends_it),
		TEST(pages_of_users_are_not_the_kernels),
		TEST(only_where_linux_maps_it_is_looked),
		TEST(the_last_page_counts),
		TEST(modules_right_behind_it_are_not_part_of_it),
		TEST(the_largest_image_is_read),
		TEST(a_larger_one_is_refused),
		TEST(all_that_is_mapped_is_measured),
		TEST(memory_that_fails_is_told),
		TEST(an_image_is_freed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
