#include "host/vm/vmcoreinfo_search.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm/ram_mappings.h"
#include "tests/fake_tree.h"

enum {
	PAGE = VMCOREINFO_BYTES,
	PID = 7,
	FIRST = 16, /* page of the first mapping */
	PAGES = 600,
	MOST_MAPPINGS = 2,
};

/* As /proc/PID/pagemap has it. */
static const uint64_t present = (uint64_t)1 << 63, swapped = (uint64_t)1 << 62,
		      file_page = (uint64_t)1 << 61;

static struct fixture {
	struct fake_tree tree;
	int memory; /* of the process */
	uint64_t pagemap[FIRST + PAGES + FIRST];
	struct ram_mapping items[MOST_MAPPINGS];
	struct ram_mappings mappings;
	struct vmcoreinfo_list found;
	struct ptvm_error error;
} fixture;

static void set_mapping(size_t i, uint64_t first, uint64_t pages)
{
	fixture.items[i] =
		(struct ram_mapping){ .from = first * PAGE, .to = (first + pages) * PAGE };
}

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	fixture.memory = memfd_create("memory", MFD_CLOEXEC);
	assert_true(fixture.memory >= 0);
	assert_int_equal(ftruncate(fixture.memory, (FIRST + PAGES + FIRST) * PAGE), 0);
	set_mapping(0, FIRST, PAGES);
	fixture.mappings = (struct ram_mappings){ .items = fixture.items, .count = 1 };
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(close(fixture.memory), 0);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static void write_page(uint64_t page, const char *text)
{
	assert_int_equal(pwrite(fixture.memory, text, strlen(text), (off_t)(page * PAGE)),
			 strlen(text));
}

/* One of a kernel whose tables are at `root`; the page was touched. */
static void put_info(uint64_t page, uint64_t root)
{
	char text[300];

	(void)snprintf(text, sizeof(text),
		       "OSRELEASE=6.1.%d\nSYMBOL(init_uts_ns)=ffffffff82000000\n"
		       "SYMBOL(init_top_pgt)=ffffffff81000000\nNUMBER(phys_base)=%d\n",
		       (int)(root / PAGE), (int)root - 0x1000000);
	write_page(page, text);
	fixture.pagemap[page] = present;
}

static int search(void)
{
	fake_tree_bytes(&fixture.tree, fixture.pagemap, sizeof(fixture.pagemap), "proc/7/pagemap");
	return vmcoreinfo_search(&fixture.tree.roots, PID, fixture.memory, &fixture.mappings,
				 &fixture.found, &fixture.error);
}

static void assert_found(const uint64_t *roots, size_t count)
{
	assert_int_equal(search(), 0);
	assert_int_equal(fixture.found.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fixture.found.items[i].root.cr3, roots[i]);
}

#define FINDS(...)                                                                                 \
	assert_found((const uint64_t[]){ __VA_ARGS__ },                                            \
		     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void where_there_is_none_nothing_is_found(void **state)
{
	memset(fixture.pagemap, 0xff, sizeof(fixture.pagemap));
	fixture.found.count = 3;
	assert_found(NULL, 0);
}

/* First and last, and where one read ends and the next begins. */
static void any_page_of_a_mapping_may_have_one(void **state)
{
	memset(fixture.pagemap, 0xff, sizeof(fixture.pagemap));
	put_info(FIRST, 0x1000);
	put_info(FIRST + 255, 0x2000);
	put_info(FIRST + 256, 0x3000);
	put_info(FIRST + PAGES - 1, 0x4000);
	put_info(FIRST - 1, 0x5000);
	put_info(FIRST + PAGES, 0x6000);
	FINDS(0x1000, 0x2000, 0x3000, 0x4000);
	assert_string_equal(fixture.found.items[0].release, "6.1.1");
	assert_int_equal(fixture.found.items[0].root_address, 0xffffffff81000000);
}

static void each_page_may_be_alone(void **state)
{
	put_info(FIRST, 0x1000);
	put_info(FIRST + 2, 0x2000);
	put_info(FIRST + 3, 0x3000);
	put_info(FIRST + PAGES - 1, 0x4000);
	FINDS(0x1000, 0x2000, 0x3000, 0x4000);
}

static void pages_that_nobody_touched_are_not_read(void **state)
{
	put_info(FIRST, 0x1000);
	put_info(FIRST + 2, 0x2000);
	put_info(FIRST + 3, 0x3000);
	fixture.pagemap[FIRST] = 0;
	fixture.pagemap[FIRST + 2] = swapped;
	fixture.pagemap[FIRST + 3] = file_page;
	FINDS(0x2000);
}

/* As after a snapshot: the guest has not written to that page since. */
static void those_of_a_file_are_where_nothing_else_is_found(void **state)
{
	put_info(FIRST + 1, 0x1000);
	fixture.pagemap[FIRST + 1] = 0;
	put_info(FIRST + PAGES + 1, 0x2000);
	fixture.pagemap[FIRST + PAGES + 1] = 0;
	set_mapping(1, FIRST + PAGES, 4);
	fixture.items[1].is_copy_of_file = true;
	fixture.mappings.count = 2;
	FINDS(0x2000);
	put_info(FIRST + 3, 0x3000);
	FINDS(0x3000);
}

static void without_a_pagemap_all_pages_are_read(void **state)
{
	put_info(FIRST + 1, 0x1000);
	fixture.pagemap[FIRST + 1] = 0;
	assert_int_equal(vmcoreinfo_search(&fixture.tree.roots, PID + 1, fixture.memory,
					   &fixture.mappings, &fixture.found, NULL),
			 0);
	assert_int_equal(fixture.found.count, 1);
}

static void so_are_those_that_it_does_not_tell_of(void **state)
{
	put_info(FIRST + 1, 0x1000);
	fixture.pagemap[FIRST + 1] = 0;
	fake_tree_bytes(&fixture.tree, fixture.pagemap, (FIRST + 2) * sizeof(fixture.pagemap[0]),
			"proc/7/pagemap");
	assert_int_equal(vmcoreinfo_search(&fixture.tree.roots, PID, fixture.memory,
					   &fixture.mappings, &fixture.found, NULL),
			 0);
	assert_int_equal(fixture.found.count, 1);
}

static void one_that_is_there_twice_counts_once(void **state)
{
	put_info(FIRST + 1, 0x1000);
	put_info(FIRST + 9, 0x1000);
	put_info(FIRST + 10, 0x2000);
	FINDS(0x1000, 0x2000);
}

static void text_that_leads_nowhere_is_none(void **state)
{
	memset(fixture.pagemap, 0xff, sizeof(fixture.pagemap));
	write_page(FIRST + 1, "OSRELEASE=6.1\n");
	write_page(FIRST + 2, "XOSRELEASE=6.1\nSYMBOL(init_uts_ns)=ffffffff82000000\n");
	put_info(FIRST + 3, 0x1000);
	write_page(FIRST + 3, "osrelease");
	assert_found(NULL, 0);
}

static void anybody_in_the_guest_may_write_hundreds(void **state)
{
	for (uint64_t i = 0; i < 3 * VMCOREINFO_FOUND; i++)
		put_info(FIRST + i, (i + 1) * PAGE);
	assert_int_equal(search(), 0);
	assert_int_equal(fixture.found.count, VMCOREINFO_FOUND);
	assert_int_equal(fixture.found.items[VMCOREINFO_FOUND - 1].root.cr3,
			 VMCOREINFO_FOUND * PAGE);
}

static void a_process_that_has_ended_is_told(void **state)
{
	put_info(FIRST, 0x1000);
	assert_int_equal(ftruncate(fixture.memory, 0), 0);
	assert_int_equal(search(), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "the process that runs the guest has ended");
}

static void pages_that_cannot_be_read_are_passed_over(void **state)
{
	const int writable = open("/dev/null", O_WRONLY | O_CLOEXEC), memory = fixture.memory;

	assert_true(writable >= 0);
	memset(fixture.pagemap, 0xff, sizeof(fixture.pagemap));
	fixture.memory = writable;
	assert_found(NULL, 0);
	fixture.memory = memory;
	assert_int_equal(close(writable), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_there_is_none_nothing_is_found),
		TEST(any_page_of_a_mapping_may_have_one),
		TEST(each_page_may_be_alone),
		TEST(pages_that_nobody_touched_are_not_read),
		TEST(those_of_a_file_are_where_nothing_else_is_found),
		TEST(without_a_pagemap_all_pages_are_read),
		TEST(so_are_those_that_it_does_not_tell_of),
		TEST(one_that_is_there_twice_counts_once),
		TEST(text_that_leads_nowhere_is_none),
		TEST(anybody_in_the_guest_may_write_hundreds),
		TEST(a_process_that_has_ended_is_told),
		TEST(pages_that_cannot_be_read_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
