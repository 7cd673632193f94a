#include "decode/label_list.h"

#include <stdbool.h>

static bool has(const struct label_list *list, const struct flow_patch *patch)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].ip == patch->insn.site &&
		    list->items[i].machine == patch->machine)
			return true;
	return false;
}

void label_list_add(struct label_list *list, const struct flow_patches *patches)
{
	for (uint32_t i = 0; i < patches->count && list->count < LABEL_LIST_MAX; i++)
		if (!has(list, &patches->items[i]))
			list->items[list->count++] =
				(struct code_site){ patches->items[i].machine,
						    patches->items[i].insn.site };
}

uint64_t label_list_lowest(const struct label_list *list)
{
	uint64_t lowest = list->count ? UINT64_MAX : 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].ip < lowest)
			lowest = list->items[i].ip;
	return lowest;
}
