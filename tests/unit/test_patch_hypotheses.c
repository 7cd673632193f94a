#include "decode/flow/patch_hypotheses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Patches are told from each other by their address. */

struct fixture {
	struct patch_candidates candidates;
	struct patch_hypotheses list;
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return !*state;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	patch_hypotheses_free(&f->list);
	free(f);
	return 0;
}

static void find(struct fixture *f, uint64_t site, unsigned unlikely, bool is_known)
{
	struct patch_candidate *candidate = &f->candidates.items[f->candidates.count++];

	assert_true(f->candidates.count <= PATCH_CANDIDATES);
	*candidate = (struct patch_candidate){ .unlikely = unlikely, .is_known = is_known };
	candidate->patch.change.insn.site = site;
}

static void gather(struct fixture *f)
{
	patch_hypotheses_gather(&f->list, &f->candidates);
	patch_candidates_clear(&f->candidates);
}

static const struct patch_hypothesis *at(const struct fixture *f, uint64_t site)
{
	const struct flow_patch patch = { .change.insn.site = site };

	return patch_hypotheses_find(&f->list, &patch);
}

static void it_is_counted_how_often_each_was_found(void **state)
{
	struct fixture *f = *state;

	find(f, 1, 0, false);
	find(f, 2, 0, false);
	find(f, 2, 0, false);
	gather(f);
	assert_int_equal(f->list.count, 2);
	assert_ptr_equal(at(f, 2), &f->list.items[0]);
	assert_int_equal(at(f, 2)->times, 2);
	assert_int_equal(at(f, 1)->times, 1);
	assert_null(at(f, 3));
}

static void each_round_counts_anew(void **state)
{
	struct fixture *f = *state;

	find(f, 1, 0, false);
	gather(f);
	f->list.items[0].is_hopeless = true;
	find(f, 2, 0, false);
	gather(f);
	assert_int_equal(at(f, 1)->times, 0);
	assert_true(at(f, 1)->is_hopeless);
	assert_int_equal(at(f, 2)->times, 1);
}

/* What was at odds in an earlier round may be explained in this one. */
static void each_is_tried_where_its_round_found_it(void **state)
{
	struct fixture *f = *state;

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 2; i++) {
			find(f, 1, 0, false);
			f->candidates.items[i].segment = 4 * round + i;
		}
		gather(f);
		assert_int_equal(at(f, 1)->candidate.segment, 4 * round);
	}
}

static void any_number_of_them_is_kept(void **state)
{
	enum { ROUNDS = 8 };
	struct fixture *f = *state;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < PATCH_CANDIDATES; i++)
			find(f, round * PATCH_CANDIDATES + i, 0, false);
		gather(f);
	}
	assert_int_equal(f->list.count, ROUNDS * PATCH_CANDIDATES);
}

static void the_likeliest_are_first_then_those_found_first(void **state)
{
	static const uint64_t order[] = { 4, 2, 1, 3 };
	struct fixture *f = *state;

	find(f, 1, 1, false);
	find(f, 2, 0, false);
	find(f, 3, 1, false);
	find(f, 4, 2, true);
	gather(f);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(f->list.items[i].candidate.patch.change.insn.site, order[i]);
}

static void what_is_gained_counts_before_what_is_likely(void **state)
{
	struct patch_hypothesis a = { .gain = 2 }, b = { .gain = 1 };

	b.candidate.is_known = true;
	assert_true(patch_hypothesis_compare(&a, &b) < 0);
	b.gain = 2;
	assert_true(patch_hypothesis_compare(&a, &b) > 0);
	a.candidate.is_known = true;
	assert_int_equal(patch_hypothesis_compare(&a, &b), 0);
	b.candidate.unlikely = 1;
	assert_true(patch_hypothesis_compare(&a, &b) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_counted_how_often_each_was_found, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_round_counts_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_is_tried_where_its_round_found_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(any_number_of_them_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_likeliest_are_first_then_those_found_first,
						set_up, tear_down),
		cmocka_unit_test(what_is_gained_counts_before_what_is_likely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
