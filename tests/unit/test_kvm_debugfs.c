#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/machine/kvm_debugfs.h"
#include "tests/fake_tree.h"

#define VCPU "debugfs/kvm/501-12/vcpu0/"

static int set_up(void **state)
{
	static struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_process(&tree, 500, "qemu-system-x86", "", 0);
	fake_tree_thread(&tree, 500, 501, "qemu-system-x86");
	fake_tree_file(&tree, "-5\n", VCPU "tsc-offset");
	fake_tree_file(&tree, "9\n", "debugfs/kvm/900-12/vcpu0/tsc-offset");
	*state = &tree;
	return 0;
}

static int tear_down(void **state)
{
	fake_tree_deinit(*state);
	return 0;
}

static void machines_belong_to_the_process_of_their_thread(void **state)
{
	const struct fake_tree *tree = *state;
	char path[200];

	assert_int_equal(kvm_debugfs_find(&tree->roots, 500, 0, path, sizeof(path)), 0);
	assert_string_equal(strrchr(path, '/'), "/501-12");
	assert_int_equal(kvm_debugfs_find(&tree->roots, 500, 1, path, sizeof(path)),
			 -PTVM_NOT_FOUND);
	assert_int_equal(kvm_debugfs_find(&tree->roots, 501, 0, path, sizeof(path)),
			 -PTVM_NOT_FOUND);
	fake_tree_file(tree, "0\n", "debugfs/kvm/500-13/vcpu0/tsc-offset");
	assert_int_equal(kvm_debugfs_find(&tree->roots, 500, 1, path, sizeof(path)), 0);
}

static int read_clock(const struct fake_tree *tree, unsigned index, struct vcpu_clock *clock)
{
	char path[200];

	assert_int_equal(kvm_debugfs_find(&tree->roots, 500, 0, path, sizeof(path)), 0);
	return vcpu_clock_read(path, index, clock);
}

static void a_clock_without_a_ratio_is_unscaled(void **state)
{
	struct vcpu_clock clock;

	assert_int_equal(read_clock(*state, 0, &clock), 0);
	assert_int_equal(clock.offset, -5);
	assert_true(vcpu_clock_is_unscaled(&clock));
	assert_int_equal(read_clock(*state, 1, &clock), -PTVM_NOT_FOUND);
}

static void a_ratio_comes_with_its_fraction_bits(void **state)
{
	const struct fake_tree *tree = *state;
	struct vcpu_clock clock;

	fake_tree_file(tree, "281474976710656\n", VCPU "tsc-scaling-ratio");
	fake_tree_file(tree, "48\n", VCPU "tsc-scaling-ratio-frac-bits");
	assert_int_equal(read_clock(tree, 0, &clock), 0);
	assert_true(vcpu_clock_is_unscaled(&clock));
	fake_tree_file(tree, "253327379052953\n", VCPU "tsc-scaling-ratio");
	assert_int_equal(read_clock(tree, 0, &clock), 0);
	assert_int_equal(clock.ratio, 253327379052953);
	assert_int_equal(clock.fraction_bits, 48);
	assert_false(vcpu_clock_is_unscaled(&clock));
}

static void a_ratio_without_sense_is_refused(void **state)
{
	const struct fake_tree *tree = *state;
	struct vcpu_clock clock;

	fake_tree_file(tree, "48\n", VCPU "tsc-scaling-ratio-frac-bits");
	assert_int_equal(read_clock(tree, 0, &clock), -PTVM_NOT_FOUND);
	fake_tree_file(tree, "0\n", VCPU "tsc-scaling-ratio");
	assert_int_equal(read_clock(tree, 0, &clock), -PTVM_BAD_INPUT);
	fake_tree_file(tree, "5\n", VCPU "tsc-scaling-ratio");
	fake_tree_file(tree, "64\n", VCPU "tsc-scaling-ratio-frac-bits");
	assert_int_equal(read_clock(tree, 0, &clock), -PTVM_BAD_INPUT);
	fake_tree_file(tree, "\n", VCPU "tsc-offset");
	assert_int_equal(read_clock(tree, 0, &clock), -PTVM_BAD_INPUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(machines_belong_to_the_process_of_their_thread),
		TEST(a_clock_without_a_ratio_is_unscaled),
		TEST(a_ratio_comes_with_its_fraction_bits),
		TEST(a_ratio_without_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
