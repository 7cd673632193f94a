/* Binary search. */
#pragma once

#include <stddef.h>

/**
 * How many of `count` items, sorted so that those for which `is_before` holds come first, are such
 * items: the index of the first other one, or `count`. `is_before` is an expression of `index`, a
 * name that the caller chooses.
 */
#define search_sorted(count, index, is_before)                                                     \
	({                                                                                         \
		size_t search_low = 0, search_high = (count);                                      \
                                                                                                   \
		while (search_low < search_high) {                                                 \
			const size_t index = search_low + (search_high - search_low) / 2;          \
                                                                                                   \
			if (is_before)                                                             \
				search_low = index + 1;                                            \
			else                                                                       \
				search_high = index;                                               \
		}                                                                                  \
		search_low;                                                                        \
	})
