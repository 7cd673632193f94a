/* One growable array. Declare `struct { T *items; size_t count, room; } v = { 0 };`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/** Make room for one more; returns false, with the array as it was, when memory is out. */
static inline bool vec_grow(void **items, size_t *room, size_t count, size_t size)
{
	size_t want = *room ? *room * 2 : 16;
	void *grown;

	if (count < *room)
		return true;
	grown = reallocarray(*items, want, size);
	if (!grown)
		return false;
	*items = grown;
	*room = want;
	return true;
}

/* Append `...` (a value of the item type) to `v`; false when memory is out. */
#define vec_push(v, ...)                                                                           \
	(vec_grow((void **)&(v)->items, &(v)->room, (v)->count, sizeof(*(v)->items))               \
		 ? ((v)->items[(v)->count++] = (__VA_ARGS__), true)                                \
		 : false)

#define vec_free(v)                                                                                \
	do {                                                                                       \
		free((v)->items);                                                                  \
		(v)->items = NULL;                                                                 \
		(v)->count = (v)->room = 0;                                                        \
	} while (0)
