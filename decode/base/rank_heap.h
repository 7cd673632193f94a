/* Things that each have a rank which changes now and then, to find the one of the lowest rank. The
 * time that takes hardly grows with their number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** A rank behind all others. */
#define RANK_LAST UINT64_MAX

/** To be part of each thing. */
struct ranked {
	uint64_t rank;
	size_t place; /* in the heap */
};

struct rank_heap {
	struct ranked **items; /* that are not in order, but each is before items 2i+1 and 2i+2 */
	size_t count;
};

/** Begin with room for so many. Returns 0 or -PTVM_NO_MEMORY. */
int rank_heap_init(struct rank_heap *heap, size_t room);

/** Add a thing, with its rank set; there must be room. It stays where it is until
 * rank_heap_free(). */
void rank_heap_add(struct rank_heap *heap, struct ranked *thing);

/** Change the rank of a thing that was added. */
void rank_heap_move(struct rank_heap *heap, struct ranked *thing, uint64_t rank);

/** The thing of the lowest rank; NULL: there is none, or they all have RANK_LAST. */
struct ranked *rank_heap_first(const struct rank_heap *heap);

/** Release the heap, not the things; accepts zeroes. */
void rank_heap_free(struct rank_heap *heap);
