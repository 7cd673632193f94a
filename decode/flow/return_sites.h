/* Where functions were seen to return to. After a gap nobody knows which calls are open, and
 * packets do not say where a compressed return goes; but functions have few callers. */
#pragma once

#include "decode/flow/block.h"

enum { RETURN_SITES = 12 };

struct return_entry {
	const struct machine *machine;
	uint64_t ip; /* return_sites_key() */
	int32_t pid;
	uint32_t count;
	uint64_t items[RETURN_SITES]; /* addresses, in the order in which they were seen */
};

/** Zero-initialise before use. */
struct return_sites {
	struct return_entry *slots; /* by a hash */
};

/** The address by which the return at the end of `block` is told from others. Kernels have one
 * return instruction for all functions, to which these jump (retpolines): it is that of the last
 * jump in the block, if there is one. */
uint64_t return_sites_key(const struct block *block);

/** The return at the end of `block` went to `to`. What is seen of too many of them, of one that
 * goes to too many places, or when memory is out, is forgotten. */
void return_sites_note(struct return_sites *sites, const struct block *block, uint64_t to);

/** Where the return at the end of `block` was seen to go, or NULL. `count` of it is more than
 * RETURN_SITES if these were too many. */
const struct return_entry *return_sites_find(const struct return_sites *sites,
					     const struct block *block);

/** Free everything; accepts zeroes. */
void return_sites_free(struct return_sites *sites);
