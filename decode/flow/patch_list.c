#include "decode/flow/patch_list.h"

#include <stdlib.h>

#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/flow/flow_patch.h"

/* Sites, of one patch after the other. */
struct sites {
	const struct flow_patch *patch;
	struct code_site *items;
	size_t count, room;
	bool is_cut;
};

static bool has(const struct patch_list *list, const struct flow_patch *patch)
{
	for (size_t i = 0; i < list->count; i++)
		if (flow_patch_is_same(&list->items[i], patch))
			return true;
	return false;
}

void patch_list_add(struct patch_list *list, const struct flow_patch *patches, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!has(list, &patches[i]) &&
		    (list->count == PATCH_LIST_MAX || !vec_push(list, patches[i])))
			list->is_cut = true;
}

/* What stands for trampolines is as it was copied: it is their call of a tracer that differs, and
 * their jump. */
static bool add_site(void *context, uint64_t site)
{
	struct sites *sites = context;
	const struct patch_change *change = &sites->patch->change;
	const struct code_site item = { sites->patch->machine, site };
	struct patched_insn insn;

	if (!patch_change_insn(change, site, &insn) || site == change->ftrace.tracer.call ||
	    site == change->ftrace.tracer.jump)
		return true;
	if (sites->count == PATCH_LIST_SITES || !vec_push(sites, item))
		sites->is_cut = true;
	return !sites->is_cut;
}

static int compare(const void *a, const void *b)
{
	const struct code_site *left = a, *right = b;

	if (left->ip != right->ip)
		return sort_order(left->ip, right->ip);
	return sort_order((uintptr_t)left->machine, (uintptr_t)right->machine);
}

struct patch_list_sites patch_list_sites(const struct patch_list *list)
{
	struct sites sites = { .is_cut = list->is_cut };
	struct patch_list_sites ret = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		sites.patch = &list->items[i];
		(void)patch_change_visit(&sites.patch->change, add_site, &sites);
	}
	sort_vec(&sites, compare);
	for (size_t i = 0; i < sites.count; i++)
		ret.count += !i || compare(&sites.items[i - 1], &sites.items[i]);
	ret.lowest = sites.count ? sites.items[0].ip : 0;
	ret.is_cut = sites.is_cut;
	vec_free(&sites);
	return ret;
}

void patch_list_free(struct patch_list *list)
{
	vec_free(list);
}
