#include "host/machine/pid_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "tests/fake_tree.h"

static struct pid_list list;

static int find(const struct roots *roots, const pid_t *tids, size_t count)
{
	return pid_list_processes(roots, &(struct pid_list){ (pid_t *)(uintptr_t)tids, count, 0 },
				  &list);
}

static int set_up(void **state)
{
	static struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_file(&tree, "Name:\tx\nTgid:\t100\n", "proc/100/status");
	fake_tree_file(&tree, "Name:\tx\nUmask:\t0022\nTgid:\t100\n", "proc/101/status");
	fake_tree_file(&tree, "Name:\tTgid:\nTgid:\t200\n", "proc/200/status");
	fake_tree_file(&tree, "Name:\tx\n", "proc/300/status");
	fake_tree_file(&tree, "", "proc/self/status");
	*state = &tree;
	return 0;
}

static int tear_down(void **state)
{
	vec_free(&list);
	fake_tree_deinit(*state);
	return 0;
}

static void each_process_is_there_once(void **state)
{
	const pid_t tids[] = { 101, 200, 100 };
	const struct fake_tree *tree = *state;

	assert_int_equal(find(&tree->roots, tids, 3), 0);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.items[0], 100);
	assert_int_equal(list.items[1], 200);
}

static void threads_that_ended_have_none(void **state)
{
	const pid_t tids[] = { 999, 300 };
	const struct fake_tree *tree = *state;

	assert_int_equal(find(&tree->roots, tids, 2), 0);
	assert_int_equal(list.count, 0);
}

static void any_thread_means_all_processes(void **state)
{
	const struct roots nowhere = { "/nowhere", "/nowhere", "/nowhere", "/nowhere" };
	const struct fake_tree *tree = *state;
	const pid_t any = -1;

	assert_int_equal(find(&tree->roots, &any, 1), 0);
	assert_int_equal(list.count, 4);
	vec_free(&list);
	assert_int_equal(find(&nowhere, &any, 1), 0);
	assert_int_equal(list.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_process_is_there_once),
		TEST(threads_that_ended_have_none),
		TEST(any_thread_means_all_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
