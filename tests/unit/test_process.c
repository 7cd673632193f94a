#include "decode/code/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PID = 77, CHILD = 78, PAGE = 0x1000, NEVER = -1 };

static struct dso files[3]; /* only their places are looked at */

/* Begin an address space; `order` is also its time, ten times. */
static void begin(struct processes *processes, int32_t pid, int32_t parent, uint64_t order)
{
	assert_int_equal(processes_begin(processes, pid, parent, 10 * order, order), 0);
}

static void map(struct processes *processes, int32_t pid, unsigned file, uint64_t start,
		uint64_t order)
{
	const struct process_map new_map = { start, 100 * file, &files[file] };

	assert_int_equal(processes_map(processes, pid, &new_map, PAGE, 10 * order, order), 0);
}

/* The number of the file at an address, NEVER where there is none. */
static int find(const struct processes *processes, int32_t pid, uint64_t address, uint64_t time,
		struct process_view *ret)
{
	if (!processes_find(processes, pid, address, time, ret)) {
		assert_null(ret->map);
		return NEVER;
	}
	assert_non_null(ret->map);
	return (int)(ret->map->dso - files);
}

static int file_at(const struct processes *processes, int32_t pid, uint64_t address, uint64_t time)
{
	struct process_view view;
	int file = find(processes, pid, address, time, &view);

	assert_true(view.from <= time && time < view.to);
	assert_true(address < view.end);
	return file;
}

static void a_map_holds_from_its_time_on(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_add(&processes, PID), 0);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 3);
	map(&processes, PID, 2, 0x5000, 6);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(find(&processes, PID, 0x5000, 29, &view), NEVER);
	assert_true(view.from == 0 && view.to == 30);
	assert_int_equal(find(&processes, PID, 0x5fff, 30, &view), 1);
	assert_true(view.from == 30 && view.to == 60 && view.end == 0x6000);
	assert_int_equal(view.map->start, 0x5000);
	assert_int_equal(view.map->page_offset, 100);
	assert_int_equal(find(&processes, PID, 0x5000, 60, &view), 2);
	assert_true(view.from == 60 && view.to == UINT64_MAX);
	assert_int_equal(find(&processes, PID, 0x4fff, 60, &view), NEVER);
	assert_int_equal(view.end, 0x5000);
	assert_int_equal(file_at(&processes, PID, 0x6000, 60), NEVER);
	processes_free(&processes);
}

static void a_pid_without_maps_has_nothing(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_link(&processes), 0);
	assert_int_equal(processes_finish(&processes), 0);
	assert_false(processes_find(&processes, PID, 0, 0, &view));
	processes_free(&processes);
	assert_int_equal(processes_add(&processes, PID), 0);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID + 1, 1, 0x5000, 1); /* nobody said that it has any */
	assert_int_equal(processes_finish(&processes), 0);
	for (int32_t pid = PID - 1; pid <= PID + 1; pid++) {
		assert_int_equal(find(&processes, pid, 0x5000, 20, &view), NEVER);
		assert_true(view.from == 0 && view.to == UINT64_MAX);
	}
	processes_free(&processes);
}

static void exec_begins_anew(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_add(&processes, PID), 0);
	begin(&processes, PID, -1, 5);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 1);
	map(&processes, PID, 2, 0x7000, 6);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(find(&processes, PID, 0x5000, 49, &view), 1);
	assert_true(view.from == 10 && view.to == 50);
	assert_int_equal(find(&processes, PID, 0x5000, 50, &view), NEVER);
	assert_int_equal(view.from, 50);
	assert_int_equal(file_at(&processes, PID, 0x7000, 59), NEVER);
	assert_int_equal(file_at(&processes, PID, 0x7000, 60), 2);
	processes_free(&processes);
}

/* Its own maps go before them; what the parent maps later is not the child's. */
static void a_child_has_what_its_parent_had_at_the_fork(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_add(&processes, PID), 0);
	begin(&processes, CHILD, PID, 5);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 0, 0x5000, 1);
	map(&processes, CHILD, 1, 0x7000, 6);
	map(&processes, PID, 2, 0x5000, 7);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(find(&processes, CHILD, 0x5000, 49, &view), NEVER);
	assert_true(view.from == 0 && view.to == 50);
	assert_int_equal(find(&processes, CHILD, 0x5000, 50, &view), 0);
	assert_true(view.from == 50 && view.to == UINT64_MAX && view.end == 0x6000);
	assert_int_equal(file_at(&processes, CHILD, 0x5000, 1000), 0);
	assert_int_equal(file_at(&processes, PID, 0x5000, 70), 2);
	assert_int_equal(file_at(&processes, CHILD, 0x7000, 60), 1);
	assert_int_equal(file_at(&processes, PID, 0x7000, 60), NEVER);
	processes_free(&processes);
}

static void the_nearest_map_of_the_line_ends_the_view(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_add(&processes, PID), 0);
	begin(&processes, CHILD, PID, 5);
	assert_int_equal(processes_link(&processes), 0);
	assert_int_equal(processes_map(&processes, PID, &(struct process_map){ 0, 0, &files[0] },
				       0x10000, 10, 1),
			 0);
	map(&processes, CHILD, 1, 0x7000, 6);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(find(&processes, CHILD, 0x6fff, 70, &view), 0);
	assert_int_equal(view.end, 0x7000);
	assert_int_equal(find(&processes, CHILD, 0x7000, 59, &view), 0);
	assert_int_equal(view.end, 0x8000);
	assert_int_equal(view.to, 60); /* then the child's own comes */
	assert_int_equal(find(&processes, CHILD, 0x7000, 60, &view), 1);
	assert_int_equal(find(&processes, CHILD, 0x8000, 70, &view), 0);
	assert_int_equal(view.end, 0x10000);
	processes_free(&processes);
}

/* Order, not time, tells what was first at the same nanosecond, or in records without time. */
static void forks_take_the_parent_of_their_order(void **state)
{
	struct processes processes = { 0 };

	assert_int_equal(processes_add(&processes, PID), 0);
	begin(&processes, CHILD, PID, 3);
	begin(&processes, PID, -1, 4);
	begin(&processes, CHILD + 1, PID, 5);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 1);
	map(&processes, PID, 2, 0x5000, 4);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(file_at(&processes, CHILD, 0x5000, 100), 1);
	assert_int_equal(file_at(&processes, CHILD + 1, 0x5000, 100), 2);
	processes_free(&processes);
}

/* A pid comes again: it is another process, of another parent. */
static void a_pid_may_be_used_again(void **state)
{
	struct processes processes = { 0 };
	struct process_view view;

	assert_int_equal(processes_add(&processes, PID), 0);
	assert_int_equal(processes_add(&processes, PID + 10), 0);
	begin(&processes, CHILD, PID, 3);
	begin(&processes, CHILD, PID + 10, 6);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 1);
	map(&processes, PID + 10, 2, 0x5000, 2);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(find(&processes, CHILD, 0x5000, 40, &view), 1);
	assert_true(view.from == 30 && view.to == 60);
	assert_int_equal(find(&processes, CHILD, 0x5000, 60, &view), 2);
	assert_true(view.from == 60 && view.to == UINT64_MAX);
	processes_free(&processes);
}

/* A process that is its own parent, or its child's child. */
static void circles_of_forks_end(void **state)
{
	struct processes processes = { 0 };

	begin(&processes, PID, PID, 1);
	begin(&processes, PID, CHILD, 2);
	begin(&processes, CHILD, PID, 3);
	begin(&processes, PID, CHILD, 4);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 2);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(processes.lost, 0);
	assert_int_equal(file_at(&processes, PID, 0x5000, 1000), 1);
	assert_int_equal(file_at(&processes, CHILD, 0x5000, 1000), 1);
	assert_int_equal(file_at(&processes, CHILD, 0x6000, 1000), NEVER);
	processes_free(&processes);
}

/* A line of forks so long that each lookup would take its time ends, and is counted. */
static void a_long_line_of_forks_is_cut(void **state)
{
	enum { DEPTH = 64, LINE = 150 };
	struct processes processes = { 0 };

	assert_int_equal(processes_add(&processes, 0), 0);
	for (int32_t pid = 1; pid < LINE; pid++)
		begin(&processes, pid, pid - 1, (uint64_t)pid + 1);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, 0, 1, 0x5000, 1);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(processes.lost, LINE / DEPTH);
	assert_int_equal(file_at(&processes, DEPTH - 1, 0x5000, 10000), 1);
	assert_int_equal(file_at(&processes, DEPTH, 0x5000, 10000), NEVER);
	assert_int_equal(file_at(&processes, LINE - 1, 0x5000, 10000), NEVER);
	processes_free(&processes);
}

static void what_is_said_twice_does_no_harm(void **state)
{
	struct processes processes = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(processes_add(&processes, PID), 0);
		assert_int_equal(processes_add(&processes, PID), 0);
		assert_int_equal(processes_add(&processes, CHILD), 0);
	}
	assert_int_equal(processes.spaces.count, 6);
	assert_int_equal(processes_link(&processes), 0);
	map(&processes, PID, 1, 0x5000, 1);
	map(&processes, CHILD, 2, 0x5000, 2);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(file_at(&processes, PID, 0x5000, 20), 1);
	assert_int_equal(file_at(&processes, CHILD, 0x5000, 20), 2);
	processes_free(&processes);
}

static void a_map_beyond_all_addresses_is_left_out(void **state)
{
	const struct process_map last = { UINT64_MAX - PAGE, 0, &files[1] };
	struct processes processes = { 0 };

	assert_int_equal(processes_add(&processes, PID), 0);
	assert_int_equal(processes_link(&processes), 0);
	assert_int_equal(processes_map(&processes, PID, &last, PAGE + 1, 10, 1), 0);
	assert_int_equal(processes.spaces.items[0].maps.count, 0);
	assert_int_equal(processes_map(&processes, PID, &last, PAGE, 10, 1), 0);
	assert_int_equal(processes_finish(&processes), 0);
	assert_int_equal(file_at(&processes, PID, UINT64_MAX - PAGE, 20), 1);
	assert_int_equal(file_at(&processes, PID, UINT64_MAX - 1, 20), 1);
	processes_free(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_holds_from_its_time_on),
		cmocka_unit_test(a_pid_without_maps_has_nothing),
		cmocka_unit_test(exec_begins_anew),
		cmocka_unit_test(a_child_has_what_its_parent_had_at_the_fork),
		cmocka_unit_test(the_nearest_map_of_the_line_ends_the_view),
		cmocka_unit_test(forks_take_the_parent_of_their_order),
		cmocka_unit_test(a_pid_may_be_used_again),
		cmocka_unit_test(circles_of_forks_end),
		cmocka_unit_test(a_long_line_of_forks_is_cut),
		cmocka_unit_test(what_is_said_twice_does_no_harm),
		cmocka_unit_test(a_map_beyond_all_addresses_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
