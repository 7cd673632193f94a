#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "host/record/tracing_data.h"
#include "tests/fake_tree.h"

#define TRACEFS "sys/kernel/tracing/events/"

struct bench {
	struct fake_tree tree;
	char *data;
	size_t size;
};

static const char *const names[] = { "kvm:kvm_entry", "kvm:kvm_exit", "sched:sched_switch" };

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree, "page\n", TRACEFS "header_page");
	fake_tree_file(&bench.tree, "event\n", TRACEFS "header_event");
	fake_tree_file(&bench.tree, "entry\n", TRACEFS "kvm/kvm_entry/format");
	fake_tree_file(&bench.tree, "exit\n", TRACEFS "kvm/kvm_exit/format");
	fake_tree_file(&bench.tree, "switch\n", TRACEFS "sched/sched_switch/format");
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	free(bench->data);
	fake_tree_deinit(&bench->tree);
	return 0;
}

/* Compare with `expected`, less the page size at `page_at`. */
static void assert_section(const struct bench *bench, const char *expected, size_t size,
			   size_t page_at)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(bench->size, size);
	assert_memory_equal(bench->data, expected, page_at);
	assert_memory_equal(bench->data + page_at, &page, sizeof(page));
	page_at += sizeof(page);
	assert_memory_equal(bench->data + page_at, expected + page_at, size - page_at);
}

#define HEAD                                                                                       \
	"\x17\x08\x44tracing0.6\0\0\x08????"                                                       \
	"header_page\0\5\0\0\0\0\0\0\0page\n"                                                      \
	"header_event\0\6\0\0\0\0\0\0\0event\n"                                                    \
	"\0\0\0\0"

enum { PAGE_AT = 16 };

static void formats_go_by_system(void **state)
{
	static const char expected[] = HEAD "\2\0\0\0"
					    "kvm\0\2\0\0\0"
					    "\6\0\0\0\0\0\0\0entry\n"
					    "\5\0\0\0\0\0\0\0exit\n"
					    "sched\0\1\0\0\0"
					    "\7\0\0\0\0\0\0\0switch\n"
					    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	struct bench *bench = *state;

	assert_int_equal(
		tracing_data_make(&bench->tree.roots, names, 3, &bench->data, &bench->size), 0);
	assert_section(bench, expected, sizeof(expected) - 1, PAGE_AT);
}

static void texts_that_formats_refer_to_come_along(void **state)
{
	static const char expected[] = HEAD "\1\0\0\0"
					    "kvm\0\1\0\0\0"
					    "\6\0\0\0\0\0\0\0entry\n"
					    "\0\0\0\0"
					    "\4\0\0\0one\n"
					    "\0\0\0\0\0\0\0\0";
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "one\n", "sys/kernel/tracing/printk_formats");
	assert_int_equal(
		tracing_data_make(&bench->tree.roots, names, 1, &bench->data, &bench->size), 0);
	assert_section(bench, expected, sizeof(expected) - 1, PAGE_AT);
}

static void tracefs_may_be_where_it_once_was(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "old\n", "debugfs/tracing/events/kvm/kvm_old/format");
	assert_int_equal(tracing_data_make(&bench->tree.roots,
					   (const char *const[]){ "kvm:kvm_old" }, 1, &bench->data,
					   &bench->size),
			 0);
	assert_non_null(memmem(bench->data, bench->size, "\4\0\0\0\0\0\0\0old\n", 12));
}

static void a_format_that_is_not_there_is_an_error(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "", TRACEFS "kvm/kvm_empty/format");
	assert_int_equal(tracing_data_make(&bench->tree.roots,
					   (const char *const[]){ "kvm:kvm_no" }, 1, &bench->data,
					   &bench->size),
			 -PTVM_NOT_FOUND);
	assert_int_equal(tracing_data_make(&bench->tree.roots,
					   (const char *const[]){ "kvm:kvm_empty" }, 1,
					   &bench->data, &bench->size),
			 -PTVM_NOT_FOUND);
	assert_null(bench->data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(formats_go_by_system),
		TEST(texts_that_formats_refer_to_come_along),
		TEST(tracefs_may_be_where_it_once_was),
		TEST(a_format_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
