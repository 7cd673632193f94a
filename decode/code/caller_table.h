/* Where functions of a kernel return to, by its code: behind each direct call of them, and where
 * functions return to that end with a jump to them. Calls by pointers are not in it, nor those of
 * code that is in no copy. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/code/image.h"
#include "decode/code/symbols.h"

/** Zero-initialise before use. */
struct caller_table {
	struct caller *items; /* by function */
	size_t count, room;
};

/**
 * Read the code of all finished symbols of a kernel.
 *
 * @ret  release with caller_table_free(), also after a failure
 *
 * Returns 0; or -PTVM_NO_MEMORY, also where there are more calls than any kernel has.
 */
int caller_table_read(const struct symbols *symbols, const struct image *image,
		      struct caller_table *ret);

/** Where the function at an address returns to: fills at most `room` of `ret`, each place once, and
 * returns how many there are; more than `room` if that is too many. */
unsigned caller_table_find(const struct caller_table *table, uint64_t function, uint64_t *ret,
			   unsigned room);

/** Free everything; accepts zeroes. */
void caller_table_free(struct caller_table *table);
