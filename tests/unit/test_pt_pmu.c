#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/machine/pt_pmu.h"
#include "tests/fake_tree.h"

#define PMU "sys/bus/event_source/devices/intel_pt/"

static int make_tree(void **state)
{
	static struct fake_tree tree;

	fake_tree_init(&tree);
	*state = &tree;
	return 0;
}

static int drop_tree(void **state)
{
	fake_tree_deinit(*state);
	return 0;
}

static void no_pmu_is_not_found(void **state)
{
	const struct fake_tree *tree = *state;
	struct ptvm_error error = { 0 };
	struct pt_pmu pmu;

	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "the kernel has no intel_pt PMU");
}

static void type_caps_and_ratios_are_read(void **state)
{
	const struct fake_tree *tree = *state;
	struct pt_pmu pmu;

	fake_tree_file(tree, "8\n", PMU "type");
	fake_tree_file(tree, "1\n", PMU "caps/mtc");
	fake_tree_file(tree, "249\n", PMU "caps/mtc_periods");
	fake_tree_file(tree, "3fff\n", PMU "caps/cycle_thresholds");
	fake_tree_file(tree, "0x1c\n", PMU "max_nonturbo_ratio");
	fake_tree_file(tree, "294:2\n", PMU "tsc_art_ratio");
	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, NULL), 0);
	assert_int_equal(pmu.type, 8);
	assert_int_equal(pmu.caps[PT_CAP_MTC], 1);
	assert_int_equal(pmu.caps[PT_CAP_MTC_PERIODS], 0x249);
	assert_int_equal(pmu.caps[PT_CAP_CYCLE_THRESHOLDS], 0x3fff);
	assert_int_equal(pmu.caps[PT_CAP_PSB_CYC], 0);
	assert_int_equal(pmu.max_nonturbo_ratio, 0x1c);
	assert_int_equal(pmu.tsc_ratio, 294);
	assert_int_equal(pmu.crystal_ratio, 2);
	assert_int_equal(pmu.term_count, 0);
}

static void terms_are_in_order_of_their_bits(void **state)
{
	const struct fake_tree *tree = *state;
	struct pt_pmu pmu;

	fake_tree_file(tree, "8\n", PMU "type");
	fake_tree_file(tree, "config:14-17\n", PMU "format/mtc_period");
	fake_tree_file(tree, "config:1\n", PMU "format/cyc");
	fake_tree_file(tree, "config:10\n", PMU "format/tsc");
	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, NULL), 0);
	assert_int_equal(pmu.term_count, 3);
	assert_string_equal(pmu.terms[0].name, "cyc");
	assert_int_equal(pmu.terms[0].low, 1);
	assert_int_equal(pmu.terms[0].high, 1);
	assert_string_equal(pmu.terms[1].name, "tsc");
	assert_string_equal(pmu.terms[2].name, "mtc_period");
	assert_int_equal(pmu.terms[2].low, 14);
	assert_int_equal(pmu.terms[2].high, 17);
}

static void terms_are_found_by_their_whole_names(void **state)
{
	const struct pt_pmu pmu = {
		.terms = { { "mtc", 9, 9 }, { "mtc_period", 14, 17 }, { "all", 0, 63 } },
		.term_count = 3
	};

	assert_ptr_equal(pt_pmu_term(&pmu, "mtc", 3), &pmu.terms[0]);
	assert_ptr_equal(pt_pmu_term(&pmu, "mtc_period=3", 10), &pmu.terms[1]);
	assert_null(pt_pmu_term(&pmu, "mtc_", 4));
	assert_null(pt_pmu_term(&pmu, "", 0));
	assert_int_equal(pt_term_most(&pmu.terms[0]), 1);
	assert_int_equal(pt_term_most(&pmu.terms[1]), 15);
	assert_true(pt_term_most(&pmu.terms[2]) == UINT64_MAX);
}

static void terms_without_sense_are_left_out(void **state)
{
	const struct fake_tree *tree = *state;
	struct pt_pmu pmu;

	fake_tree_file(tree, "8\n", PMU "type");
	fake_tree_file(tree, "config:17-14\n", PMU "format/backwards");
	fake_tree_file(tree, "config:99\n", PMU "format/far");
	fake_tree_file(tree, "config1:3\n", PMU "format/elsewhere");
	fake_tree_file(tree, "", PMU "format/empty");
	fake_tree_file(tree, "config:1", PMU "format/a_name_that_is_longer_than_any_of_theirs");
	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, NULL), 0);
	assert_int_equal(pmu.term_count, 0);
}

static void a_type_that_is_no_number_is_bad_input(void **state)
{
	const struct fake_tree *tree = *state;
	struct pt_pmu pmu;

	fake_tree_file(tree, "eight\n", PMU "type");
	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, NULL), -PTVM_BAD_INPUT);
	fake_tree_file(tree, "-1\n", PMU "type");
	assert_int_equal(pt_pmu_read(&tree->roots, &pmu, NULL), -PTVM_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_pmu_is_not_found, make_tree, drop_tree),
		cmocka_unit_test_setup_teardown(type_caps_and_ratios_are_read, make_tree,
						drop_tree),
		cmocka_unit_test_setup_teardown(terms_are_in_order_of_their_bits, make_tree,
						drop_tree),
		cmocka_unit_test(terms_are_found_by_their_whole_names),
		cmocka_unit_test_setup_teardown(terms_without_sense_are_left_out, make_tree,
						drop_tree),
		cmocka_unit_test_setup_teardown(a_type_that_is_no_number_is_bad_input, make_tree,
						drop_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
