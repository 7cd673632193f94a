/* Sorting, and what to sort by. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

/* Sort a growable array (vec.h), which may be empty, by a comparison for qsort(3). */
#define sort_vec(v, compare)                                                                       \
	do {                                                                                       \
		if ((v)->count)                                                                    \
			qsort((v)->items, (v)->count, sizeof(*(v)->items), (compare));             \
	} while (0)

/* Which of two numbers is less: below 0, 0, or above. */
#define sort_order(a, b) (((a) > (b)) - ((a) < (b)))

/* Define a comparison for qsort(3) and bsearch(3): of items of a type, by a number that each has.
 */
#define SORT_BY(name, type, member)                                                                \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		const type *left = a, *right = b;                                                  \
                                                                                                   \
		return sort_order(left->member, right->member);                                    \
	}

/* The same, and where that is equal by another number. */
#define SORT_BY_TWO(name, type, member, other)                                                     \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		const type *left = a, *right = b;                                                  \
		const int order = sort_order(left->member, right->member);                         \
                                                                                                   \
		return order ? order : sort_order(left->other, right->other);                      \
	}

/** The same of numbers themselves. */
static inline int sort_numbers(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return sort_order(left, right);
}
