#include "decode/print/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SITE = 0x1000 };

/* Of a segment with some instructions, and patches of sites from `first` on. */
static struct outcome *make(uint64_t insns, uint64_t first, uint32_t patches)
{
	struct outcome *outcome =
		calloc(1, sizeof(*outcome) + patches * sizeof(outcome->patches[0]));

	assert_non_null(outcome);
	outcome->insns = insns;
	outcome->gaps[GAP_MISMATCH] = 1;
	outcome->patch_count = patches;
	for (uint32_t i = 0; i < patches; i++)
		outcome->patches[i].change.insn.site = first + i;
	return outcome;
}

static size_t free_all(struct outcome *list)
{
	size_t count = 0;

	for (struct outcome *next; list; list = next, count++) {
		next = list->next;
		free(list);
	}
	return count;
}

static void the_first_counts_for_all(void **state)
{
	struct outcome *list = NULL, *last = make(3, SITE, 1);

	outcome_list_add(&list, make(1, 0, 0));
	outcome_list_add(&list, make(2, 0, 0));
	last->left_out = last->is_full = true;
	last->corrections = 4;
	last->translated = 5;
	outcome_list_add(&list, last);
	assert_int_equal(list->insns, 6);
	assert_int_equal(list->gaps[GAP_MISMATCH], 3);
	assert_int_equal(list->corrections, 4);
	assert_int_equal(list->translated, 5);
	assert_true(list->left_out && list->is_full);
	assert_ptr_equal(list->next, last);
	assert_int_equal(
		last->insns + last->gaps[GAP_MISMATCH] + last->corrections + last->translated, 0);
	assert_int_equal(free_all(list), 2);
}

static void patches_that_are_known_take_no_memory(void **state)
{
	enum { SEGMENTS = 100 };
	struct outcome *list = NULL;

	for (unsigned i = 0; i < SEGMENTS; i++)
		outcome_list_add(&list, make(1, SITE + i % 2, 2));
	assert_int_equal(list->insns, SEGMENTS);
	assert_int_equal(list->gaps[GAP_MISMATCH], SEGMENTS);
	assert_int_equal(free_all(list), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_counts_for_all),
		cmocka_unit_test(patches_that_are_known_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
