#include "host/machine/kvm_tracepoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

static uint64_t ids[KVM_TRACEPOINT_COUNT];

static int set_up(void **state)
{
	static struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_file(&tree, "115\n", "sys/kernel/tracing/events/kvm/kvm_entry/id");
	fake_tree_file(&tree, "103\n", "sys/kernel/tracing/events/kvm/kvm_exit/id");
	*state = &tree;
	return 0;
}

static int tear_down(void **state)
{
	fake_tree_deinit(*state);
	return 0;
}

static void they_are_found_in_either_place(void **state)
{
	const struct fake_tree *tree = *state;

	fake_tree_file(tree, "83\n", "debugfs/tracing/events/kvm/kvm_write_tsc_offset/id");
	assert_int_equal(kvm_tracepoints_read(&tree->roots, ids, NULL), 0);
	assert_int_equal(ids[0], 115);
	assert_int_equal(ids[1], 103);
	assert_int_equal(ids[2], 83);
}

static void one_that_is_not_there_is_told(void **state)
{
	const struct fake_tree *tree = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(kvm_tracepoints_read(&tree->roots, ids, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message,
			    "no tracepoint kvm:kvm_write_tsc_offset: load kvm_intel, mount tracefs "
			    "on /sys/kernel/tracing, and run as root");
	fake_tree_file(tree, "-3\n", "sys/kernel/tracing/events/kvm/kvm_write_tsc_offset/id");
	assert_int_equal(kvm_tracepoints_read(&tree->roots, ids, NULL), -PTVM_NOT_FOUND);
	fake_tree_file(tree, "x\n", "sys/kernel/tracing/events/kvm/kvm_write_tsc_offset/id");
	assert_int_equal(kvm_tracepoints_read(&tree->roots, ids, NULL), -PTVM_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(they_are_found_in_either_place),
		TEST(one_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
