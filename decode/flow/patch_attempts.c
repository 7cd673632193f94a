#include "decode/flow/patch_attempts.h"

#include <string.h>

#include "decode/base/sort.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/patch_forms.h"

enum {
	TOLD = 12,  /* addresses that packets must tell before the next disagreement, if any; */
	MET = 32,   /* or, with usual patches, so many returns to calls that were followed */
	VISITS = 3, /* to sites for each form that is not the likeliest, all of which must agree */
	ROW = 32,   /* bytes of code in which labels are in a row */
};

static bool has_patch(const struct flow_patches *patches, uint32_t from,
		      const struct flow_patch *patch)
{
	for (uint32_t i = from; i < patches->count; i++)
		if (flow_patch_is_same(&patches->items[i], patch))
			return true;
	return false;
}

static bool has_same_patches(const struct flow_patches *a, const struct flow_patches *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!has_patch(b, 0, &a->items[i]))
			return false;
	return true;
}

/* Below 0: `a` explains more than `b`. */
static int compare(const struct patch_attempt *a, const struct patch_attempt *b)
{
	if (a->reach != b->reach)
		return a->reach > b->reach ? -1 : 1;
	if (a->odd != b->odd)
		return a->odd < b->odd ? -1 : 1;
	if (a->traits.unlikely != b->traits.unlikely)
		return a->traits.unlikely < b->traits.unlikely ? -1 : 1;
	return sort_order(a->patches.count, b->patches.count);
}

void patch_attempts_keep(struct patch_attempts *list, const struct patch_attempt *attempt)
{
	unsigned at = 0;

	while (at < list->count && !has_same_patches(&list->items[at].patches, &attempt->patches))
		at++;
	if (at == PATCH_ATTEMPTS)
		at--;
	if (at < list->count && compare(attempt, &list->items[at]) >= 0)
		return;
	list->count += at == list->count;
	for (; at > 0 && compare(attempt, &list->items[at - 1]) < 0; at--)
		list->items[at] = list->items[at - 1];
	list->items[at] = *attempt;
}

bool patch_attempts_explain_all(const struct patch_attempts *list,
				const struct flow_patches *patches)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->items[i].reach == UINT64_MAX &&
		    has_same_patches(&list->items[i].patches, patches))
			return true;
	return false;
}

static const struct flow_patch *last_patch(const struct patch_attempt *attempt)
{
	const struct flow_patches *patches = &attempt->patches;

	return patches->count ? &patches->items[patches->count - 1] : NULL;
}

/* Whether two change labels in a row, which lead to the same, `a` the one before. */
static bool is_next_label(const struct patch_change *a, const struct patch_change *b)
{
	return a->insn.to == b->insn.to && a->also.site == b->also.site &&
	       a->also.to == b->also.to && a->insn.site < b->insn.site &&
	       b->insn.site - a->insn.site <= ROW;
}

/* Whether the last patches are of labels in a row, that of `a` before that of `b`. */
static bool is_before_in_row(const struct patch_attempt *a, const struct patch_attempt *b)
{
	const struct flow_patch *first = last_patch(a), *second = last_patch(b);

	return first && second && first->machine == second->machine &&
	       is_next_label(&first->change, &second->change);
}

/* Of two that explain as much: whether `a` is preferred to `b`. */
static bool is_preferred(const struct patch_attempt *a, const struct patch_attempt *b)
{
	if (a->traits.groups == b->traits.groups)
		return is_before_in_row(a, b);
	if (a->visits != b->visits)
		return a->visits > b->visits;
	return a->traits.groups < b->traits.groups;
}

static bool is_outdone(const struct patch_attempts *list, const struct patch_attempt *attempt)
{
	for (unsigned i = 0; i < list->count; i++)
		if (!compare(&list->items[i], attempt) && is_preferred(&list->items[i], attempt))
			return true;
	return false;
}

void patch_attempts_settle(struct patch_attempts *list)
{
	for (unsigned i = list->count; i-- > 0;)
		if (is_outdone(list, &list->items[i]))
			memmove(&list->items[i], &list->items[i + 1],
				(--list->count - i) * sizeof(*list->items));
}

static bool is_enough(const struct patch_attempt *attempt)
{
	const struct patch_traits *traits = &attempt->traits;
	bool is_clear = attempt->visits >= VISITS * traits->unlikely && !attempt->odd &&
			traits->unlikely < PATCH_IMPROBABLE;

	if (traits->unlikely && !is_clear)
		return false;
	return attempt->reach == UINT64_MAX || attempt->told >= TOLD ||
	       (attempt->met >= MET && !traits->unusual);
}

bool patch_attempts_are_enough(const struct patch_attempts *list)
{
	return list->count && is_enough(&list->items[0]);
}

void patch_attempts_agree(struct patch_attempts *list, uint32_t known)
{
	struct flow_patches *patches = &list->items[0].patches;
	uint32_t count = known;

	for (uint32_t k = known; k < patches->count; k++) {
		bool in_all = true;

		for (unsigned i = 1; i < list->count && !compare(&list->items[0], &list->items[i]);
		     i++)
			in_all &= has_patch(&list->items[i].patches, known, &patches->items[k]);
		if (in_all)
			patches->items[count++] = patches->items[k];
	}
	patches->count = count;
}
