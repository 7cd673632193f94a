#include "decode/flow/patch_hypotheses.h"

#include <stdlib.h>

#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/flow/flow_patch.h"

struct patch_hypothesis *patch_hypotheses_find(const struct patch_hypotheses *list,
					       const struct flow_patch *patch)
{
	for (size_t i = 0; i < list->count; i++)
		if (flow_patch_is_same(&list->items[i].candidate.patch, patch))
			return &list->items[i];
	return NULL;
}

/* Below 0: `a` is likelier, whatever it explains. */
static int compare_chances(const struct patch_candidate *a, const struct patch_candidate *b)
{
	if (a->is_known != b->is_known)
		return a->is_known ? -1 : 1;
	return sort_order(a->unlikely, b->unlikely);
}

static int compare(const void *a, const void *b)
{
	const struct patch_hypothesis *left = a, *right = b;
	int r = compare_chances(&left->candidate, &right->candidate);

	if (left->times != right->times)
		return left->times > right->times ? -1 : 1;
	return r ? r : sort_order(left->number, right->number);
}

static void count(struct patch_hypotheses *list, const struct patch_candidate *candidate)
{
	struct patch_hypothesis *known = patch_hypotheses_find(list, &candidate->patch);
	const struct patch_hypothesis new = { .candidate = *candidate,
					      .number = list->count,
					      .times = 1 };

	if (!known) {
		(void)vec_push(list, new);
		return;
	}
	if (!known->times++)
		known->candidate.segment = candidate->segment;
}

void patch_hypotheses_gather(struct patch_hypotheses *list,
			     const struct patch_candidates *candidates)
{
	for (size_t i = 0; i < list->count; i++) {
		list->items[i].times = list->items[i].own = 0;
		list->items[i].gain = 0;
	}
	for (unsigned i = 0; i < candidates->count; i++)
		count(list, &candidates->items[i]);
	sort_vec(list, compare);
}

int patch_hypothesis_compare(const struct patch_hypothesis *a, const struct patch_hypothesis *b)
{
	if (a->gain != b->gain)
		return a->gain > b->gain ? -1 : 1;
	return compare_chances(&a->candidate, &b->candidate);
}

void patch_hypotheses_free(struct patch_hypotheses *list)
{
	vec_free(list);
}
