#include "decode/flow/return_sites.h"

#include <stdlib.h>

enum { SLOTS = 1 << 15, PROBES = 8 };

uint64_t return_sites_key(const struct block *block)
{
	const struct insn *last = &block->insns[block->count - 1];

	for (unsigned i = block->count; i-- > 0;)
		if (block->insns[i].class == INSN_JMP)
			return block->insns[i].ip;
	return last->ip;
}

static bool is_of(const struct return_entry *entry, const struct block *block, uint64_t ip)
{
	return entry->ip == ip && entry->pid == block->space->pid &&
	       entry->machine == block->space->machine;
}

/* The entry of a return, or the free one where it belongs; NULL: there is no room. */
static struct return_entry *slot_of(const struct return_sites *sites, const struct block *block)
{
	uint64_t ip = return_sites_key(block);

	for (size_t i = 0; sites->slots && i < PROBES; i++) {
		struct return_entry *entry;

		entry = &sites->slots[(block_slot(ip, SLOTS - 1) + i) % SLOTS];
		if (!entry->ip || is_of(entry, block, ip))
			return entry;
	}
	return NULL;
}

void return_sites_note(struct return_sites *sites, const struct block *block, uint64_t to)
{
	struct return_entry *entry;

	if (!sites->slots)
		sites->slots = calloc(SLOTS, sizeof(*sites->slots));
	entry = slot_of(sites, block);
	if (!entry || entry->count > RETURN_SITES)
		return;
	entry->machine = block->space->machine;
	entry->ip = return_sites_key(block);
	entry->pid = block->space->pid;
	for (uint32_t i = 0; i < entry->count; i++)
		if (entry->items[i] == to)
			return;
	if (entry->count < RETURN_SITES)
		entry->items[entry->count] = to;
	entry->count++;
}

const struct return_entry *return_sites_find(const struct return_sites *sites,
					     const struct block *block)
{
	const struct return_entry *entry = slot_of(sites, block);

	return entry && entry->ip ? entry : NULL;
}

void return_sites_free(struct return_sites *sites)
{
	free(sites->slots);
	sites->slots = NULL;
}
