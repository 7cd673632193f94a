#include "decode/label_list.h"

#include <stdbool.h>

static bool has(const struct label_list *list, const struct machine *machine, uint64_t site)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].ip == site && list->items[i].machine == machine)
			return true;
	return false;
}

static void add(struct label_list *list, const struct machine *machine, uint64_t site)
{
	if (list->count < LABEL_LIST_MAX && !has(list, machine, site))
		list->items[list->count++] = (struct code_site){ machine, site };
}

static void add_group(struct label_list *list, const struct flow_patch *patch)
{
	const struct tracepoint_table *table = patch->group.table;
	struct patched_insn insn;

	for (size_t i = 0; i < table->count; i++) {
		const struct tracepoint_site *site = &table->items[i];

		if (site->target && tracepoint_group_has(&patch->group, site) &&
		    tracepoint_group_insn(&patch->group, site, &insn))
			add(list, patch->machine, site->ip);
	}
}

static void add_key(struct label_list *list, const struct flow_patch *patch)
{
	const struct label_key *key = &patch->key;

	for (uint32_t at = key->first; at != LABEL_KEY_END; at = label_key_next(key, at))
		add(list, patch->machine, key->table->items[at].site);
}

void label_list_add(struct label_list *list, const struct flow_patch *patches, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (patches[i].group.table)
			add_group(list, &patches[i]);
		else if (patches[i].key.table)
			add_key(list, &patches[i]);
		else
			add(list, patches[i].machine, patches[i].insn.site);
	}
}

uint64_t label_list_lowest(const struct label_list *list)
{
	uint64_t lowest = list->count ? UINT64_MAX : 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].ip < lowest)
			lowest = list->items[i].ip;
	return lowest;
}
