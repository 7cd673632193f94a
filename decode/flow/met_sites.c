#include "decode/flow/met_sites.h"

#include <stdlib.h>

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/patch_forms.h"

void met_sites_begin(struct met_sites *sites, uint32_t stamp)
{
	sites->stamp = stamp;
}

/* Where there is a later copy any instruction may be another in it; and those of blocks that have
 * been patched may be of any form. */
static bool may_be_patched(const struct block *block, const struct insn *insn)
{
	return block->patched || machine_has_later_code(block->space->machine) ||
	       patch_forms_may_be(block->space->machine, insn, block->from_ns);
}

void met_sites_note(struct met_sites *sites, struct block *block)
{
	if (block->stamp == sites->stamp)
		return;
	block->stamp = sites->stamp;
	if (!flow_patch_is_possible(block))
		return;
	for (unsigned i = 0; i < block->count; i++)
		if (may_be_patched(block, &block->insns[i]) &&
		    !vec_push(sites, (uint32_t)block->insns[i].ip))
			sites->is_cut = true;
}

static int compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return sort_order(left, right);
}

void met_sites_settle(struct met_sites *sites)
{
	size_t count = 0;

	if (sites->settled == sites->count)
		return;
	sort_vec(sites, compare);
	for (size_t i = 0; i < sites->count; i++)
		if (!count || sites->items[i] != sites->items[count - 1])
			sites->items[count++] = sites->items[i];
	sites->count = sites->settled = count;
}

static bool is_not_met(void *context, uint64_t ip)
{
	const struct met_sites *sites = *(const struct met_sites **)context;
	uint32_t key = (uint32_t)ip;
	size_t at = search_sorted(sites->settled, i, sites->items[i] < key);

	return at == sites->settled || sites->items[at] != key;
}

bool met_sites_have(const struct met_sites *sites, const struct patch_change *change)
{
	return sites->is_cut || !patch_change_visit(change, is_not_met, &sites);
}

void met_sites_free(struct met_sites *sites)
{
	vec_free(sites);
}
