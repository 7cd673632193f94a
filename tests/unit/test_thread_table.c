#include "decode/perf/thread_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct thread_table table;

static int set_up(void **state)
{
	memset(&table, 0, sizeof(table));
	return 0;
}

static int tear_down(void **state)
{
	thread_table_free(&table);
	return 0;
}

static void add_process(size_t order, int32_t pid, int32_t tid)
{
	assert_int_equal(thread_table_add_process(&table, order, pid, tid), 0);
}

static void add_name(size_t order, uint64_t time, int32_t tid, const char *name)
{
	const struct thread_name thread = {
		.order = order, .time = time, .tid = tid, .name = name
	};

	assert_int_equal(thread_table_add_name(&table, thread), 0);
}

static void settle(void)
{
	assert_int_equal(thread_table_settle(&table), 0);
}

static void the_last_process_of_a_thread_is_its_process(void **state)
{
	add_process(1, 100, 7);
	add_process(2, 200, 7);
	add_process(3, 100, 7); /* as before the last */
	add_process(4, 300, 8);
	settle();
	assert_int_equal(thread_table_pid(&table, 7), 100);
	assert_int_equal(thread_table_pid(&table, 8), 300);
	assert_int_equal(thread_table_pid(&table, 9), -1);
	assert_int_equal(thread_table_pid(&table, 0), 0);
}

static void numbers_below_1_tell_nothing(void **state)
{
	add_process(1, 100, 7);
	add_process(2, -1, 7);
	add_process(3, 0, 7);
	add_process(4, 100, -1);
	add_process(5, 100, 0);
	settle();
	assert_int_equal(thread_table_pid(&table, 7), 100);
	assert_int_equal(table.processes.count, 1);
}

/* Few threads are told of by millions of records. */
static void what_is_told_again_is_not_kept(void **state)
{
	for (size_t order = 0; order < 3000; order++)
		add_process(order, 100, 1 + (int32_t)(order % 3));
	assert_int_equal(table.processes.count, 3);
}

/* More threads than the table remembers to have heard of. */
static void many_threads_take_no_more_than_they_need(void **state)
{
	enum { THREADS = 1000, TIMES = 30 };
	const int32_t next = THREAD_TABLE_TOLD; /* takes the place of the one before */

	for (int k = 0; k < TIMES; k++)
		for (int32_t i = 0; i < THREADS; i++)
			add_process((size_t)(k * THREADS + i), k, 1 + i * next);
	assert_in_range(table.processes.count, THREADS, THREADS * TIMES / 2);
	settle();
	assert_int_equal(table.processes.count, THREADS);
	for (int32_t i = 0; i < THREADS; i++)
		assert_int_equal(thread_table_pid(&table, 1 + i * next), TIMES - 1);
}

static void a_name_holds_until_the_next_one(void **state)
{
	add_name(5, 2000, 7, "new");
	add_name(1, 1000, 7, "old");
	settle();
	assert_null(thread_table_name(&table, 7, 999));
	assert_string_equal(thread_table_name(&table, 7, 1000), "old");
	assert_string_equal(thread_table_name(&table, 7, 1999), "old");
	assert_string_equal(thread_table_name(&table, 7, 2000), "new");
	assert_int_equal(thread_table_name_until(&table, 7, 1000), 2000);
	assert_int_equal(thread_table_name_until(&table, 7, 2000), UINT64_MAX);
	assert_string_equal(thread_table_name(&table, 0, 0), "swapper");
	assert_null(thread_table_name(&table, 8, 2000));
}

/* What perf makes up of threads that were there before has no time. */
static void records_of_one_time_are_told_apart(void **state)
{
	const struct thread_name fork = { .order = 1, .tid = 7, .parent_tid = 0 };

	assert_int_equal(thread_table_add_name(&table, fork), 0);
	add_name(2, 0, 7, "init");
	settle();
	assert_null(thread_table_name_by(&table, 7, 0));
	assert_string_equal(thread_table_name_by(&table, 7, 1), "swapper");
	assert_string_equal(thread_table_name_by(&table, 7, 2), "init");
	assert_string_equal(thread_table_name_by(&table, 7, 3), "init");
	assert_string_equal(thread_table_name_by(&table, 0, 0), "swapper");
	assert_null(thread_table_name_by(&table, 8, 3));
}

static void a_new_thread_is_called_as_its_parent_was(void **state)
{
	struct thread_name fork = { .order = 3, .time = 3000, .tid = 9, .parent_tid = 8 };

	add_name(1, 1000, 7, "shell");
	assert_int_equal(thread_table_add_name(&table, fork), 0);
	fork = (struct thread_name){ .order = 2, .time = 2000, .tid = 8, .parent_tid = 7 };
	assert_int_equal(thread_table_add_name(&table, fork), 0);
	add_name(4, 4000, 7, "later");
	settle();
	assert_string_equal(thread_table_name(&table, 8, 2000), "shell");
	assert_string_equal(thread_table_name(&table, 9, 3000), "shell");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_process_of_a_thread_is_its_process),
		TEST(numbers_below_1_tell_nothing),
		TEST(what_is_told_again_is_not_kept),
		TEST(many_threads_take_no_more_than_they_need),
		TEST(a_name_holds_until_the_next_one),
		TEST(records_of_one_time_are_told_apart),
		TEST(a_new_thread_is_called_as_its_parent_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
