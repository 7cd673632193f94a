#include "decode/print/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow_patch.h"

static bool has_patch(const struct outcome *list, const struct flow_patch *patch)
{
	for (; list; list = list->next)
		for (uint32_t i = 0; i < list->patch_count; i++)
			if (flow_patch_is_same(&list->patches[i], patch))
				return true;
	return false;
}

static bool has_patches(const struct outcome *list, const struct outcome *of)
{
	for (uint32_t i = 0; i < of->patch_count; i++)
		if (!has_patch(list, &of->patches[i]))
			return false;
	return true;
}

/* Take over what is counted. */
static void take_counts(struct outcome *to, struct outcome *from)
{
	for (int kind = 0; kind < GAP_KINDS; kind++)
		to->gaps[kind] += from->gaps[kind];
	to->insns += from->insns;
	to->events += from->events;
	to->addresses += from->addresses;
	to->psbs += from->psbs;
	to->corrections += from->corrections;
	to->translated += from->translated;
	to->left_out |= from->left_out;
	to->is_full |= from->is_full;
	memset(from->gaps, 0, sizeof(from->gaps));
	from->insns = from->events = from->addresses = from->psbs = 0;
	from->corrections = from->translated = 0;
}

void outcome_list_add(struct outcome **list, struct outcome *outcome)
{
	struct outcome *first = *list;

	if (!first) {
		outcome->next = NULL;
		*list = outcome;
		return;
	}
	take_counts(first, outcome);
	if (has_patches(first, outcome)) {
		free(outcome);
		return;
	}
	outcome->next = first->next;
	first->next = outcome;
}
