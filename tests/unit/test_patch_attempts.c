#include "decode/flow/patch_attempts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Each attempt is told from others by the address of its only patch. */

enum { TARGET = 0x1000, ROW_BYTES = 2 };

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct patch_attempts));
	return !*state;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct patch_attempt attempt_at(uint64_t site, uint64_t reach)
{
	struct patch_attempt attempt = { .reach = reach };

	attempt.patches.count = 1;
	attempt.patches.items[0].change.insn.site = site;
	attempt.patches.items[0].change.insn.to = TARGET;
	return attempt;
}

static void keep(struct patch_attempts *list, uint64_t site, uint64_t reach)
{
	const struct patch_attempt attempt = attempt_at(site, reach);

	patch_attempts_keep(list, &attempt);
}

static uint64_t site_of(const struct patch_attempts *list, unsigned index)
{
	assert_true(index < list->count);
	return list->items[index].patches.items[0].change.insn.site;
}

static void what_reaches_furthest_is_first(void **state)
{
	struct patch_attempts *list = *state;

	keep(list, 1, 10);
	keep(list, 2, 30);
	keep(list, 3, 20);
	assert_int_equal(list->count, 3);
	assert_int_equal(site_of(list, 0), 2);
	assert_int_equal(site_of(list, 1), 3);
	assert_int_equal(site_of(list, 2), 1);
}

static void the_worst_give_way(void **state)
{
	struct patch_attempts *list = *state;

	for (unsigned i = 1; i <= 2 * PATCH_ATTEMPTS; i++)
		keep(list, i, i);
	assert_int_equal(list->count, PATCH_ATTEMPTS);
	assert_int_equal(site_of(list, 0), 2 * PATCH_ATTEMPTS);
	keep(list, 1, 1);
	assert_int_equal(site_of(list, PATCH_ATTEMPTS - 1), PATCH_ATTEMPTS + 1);
}

static void the_same_patches_count_once(void **state)
{
	struct patch_attempts *list = *state;
	const struct patch_attempt again = attempt_at(1, 0);

	keep(list, 1, 10);
	keep(list, 2, 20);
	keep(list, 1, 5);
	assert_int_equal(list->items[1].reach, 10);
	assert_false(patch_attempts_explain_all(list, &again.patches));
	keep(list, 1, UINT64_MAX);
	assert_int_equal(list->count, 2);
	assert_int_equal(site_of(list, 0), 1);
	assert_true(patch_attempts_explain_all(list, &again.patches));
}

/* Labels in a row, and one that is elsewhere. */
static const uint64_t sites[] = { 0x100, 0x100 + ROW_BYTES, 0x100 + 2 * ROW_BYTES, 0x200 };

static void keep_permuted(struct patch_attempts *list, unsigned order, unsigned count)
{
	unsigned left[] = { 0, 1, 2, 3 };

	list->count = 0;
	for (unsigned i = count; i > 0; order /= i--) {
		keep(list, sites[left[order % i]], UINT64_MAX);
		left[order % i] = left[i - 1];
	}
}

static void of_labels_in_a_row_the_first_is_preferred(void **state)
{
	struct patch_attempts *list = *state;

	for (unsigned order = 0; order < 6; order++) {
		keep_permuted(list, order, 3);
		assert_int_equal(list->count, 3);
		patch_attempts_settle(list);
		assert_int_equal(list->count, 1);
		assert_int_equal(site_of(list, 0), sites[0]);
		patch_attempts_agree(list, 0);
		assert_int_equal(list->items[0].patches.count, 1);
	}
}

/* Whatever was tried first. */
static void a_rival_of_labels_in_a_row_is_not_overlooked(void **state)
{
	struct patch_attempts *list = *state;

	for (unsigned order = 0; order < 24; order++) {
		keep_permuted(list, order, 4);
		patch_attempts_settle(list);
		assert_int_equal(list->count, 2);
		patch_attempts_agree(list, 0);
		assert_int_equal(list->items[0].patches.count, 0);
	}
}

static void a_group_must_be_met_more_often(void **state)
{
	struct patch_attempts *list = *state;

	for (unsigned visits = 1; visits <= 2; visits++) {
		struct patch_attempt group = attempt_at(2, UINT64_MAX);

		group.traits.groups = 1;
		group.visits = visits;
		list->count = 0;
		keep(list, 1, UINT64_MAX);
		list->items[0].visits = 1;
		patch_attempts_keep(list, &group);
		patch_attempts_settle(list);
		assert_int_equal(list->count, 1);
		assert_int_equal(site_of(list, 0), visits);
	}
}

static void what_not_all_have_is_dropped(void **state)
{
	struct patch_attempts *list = *state;
	struct patch_attempt attempt = attempt_at(1, UINT64_MAX);

	attempt.patches.count = 3;
	attempt.patches.items[1].change.insn.site = 2;
	attempt.patches.items[2].change.insn.site = 3;
	patch_attempts_keep(list, &attempt);
	attempt.patches.items[2].change.insn.site = 4;
	patch_attempts_keep(list, &attempt);
	attempt.reach = 10; /* it does not explain as much */
	attempt.patches.items[1].change.insn.site = 5;
	patch_attempts_keep(list, &attempt);
	patch_attempts_agree(list, 1);
	assert_int_equal(list->items[0].patches.count, 2);
	assert_int_equal(list->items[0].patches.items[1].change.insn.site, 2);
}

static void enough_is_told_or_met_without_doubt(void **state)
{
	struct patch_attempts *list = *state;
	struct patch_attempt *best = list->items;

	assert_false(patch_attempts_are_enough(list));
	keep(list, 1, 10);
	best->told = 11;
	best->met = 31;
	assert_false(patch_attempts_are_enough(list));
	best->met = 32;
	assert_true(patch_attempts_are_enough(list));
	best->traits.unusual = 1;
	assert_false(patch_attempts_are_enough(list));
	best->told = 12;
	assert_true(patch_attempts_are_enough(list));
	best->traits.unlikely = 1;
	assert_false(patch_attempts_are_enough(list));
	best->visits = 3;
	assert_true(patch_attempts_are_enough(list));
	best->odd = 1;
	assert_false(patch_attempts_are_enough(list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_reaches_furthest_is_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_worst_give_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_same_patches_count_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_labels_in_a_row_the_first_is_preferred, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_rival_of_labels_in_a_row_is_not_overlooked,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_group_must_be_met_more_often, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_not_all_have_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(enough_is_told_or_met_without_doubt, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
