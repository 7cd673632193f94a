/* Which instructions of kernels, of those that may be patched, flows came by in a segment. A patch
 * of others changes nothing of what they tell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/block.h"

struct patch_change;

/** Zero-initialise before use. */
struct met_sites {
	uint32_t *items; /* the lower halves of addresses; the first `settled` are in order */
	size_t count, room, settled;
	uint32_t stamp; /* of the blocks that were noted since met_sites_begin() */
	bool is_cut;    /* memory was out: it may have met any */
};

/** A flow begins to go through the segment. `stamp` is not 0, and no block has it. */
void met_sites_begin(struct met_sites *sites, uint32_t stamp);

/** The flow comes to a block. */
void met_sites_note(struct met_sites *sites, struct block *block);

/** The flow has ended: what it met is added to what others did before. */
void met_sites_settle(struct met_sites *sites);

/** Whether flows came by any instruction that a change has. */
bool met_sites_have(const struct met_sites *sites, const struct patch_change *change);

/** Free everything; accepts zeroes. */
void met_sites_free(struct met_sites *sites);
