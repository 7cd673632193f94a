#include "decode/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/huge_pages.h"

enum {
	CHUNK = 256 << 10,
	LARGE = HUGE_PAGE / 2, /* what is not smaller lies in huge pages in any case */
	ALIGN = 16,
};

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	bool is_huge;
	_Alignas(16) uint8_t bytes[];
};

static int add_chunk(struct arena *arena, size_t size)
{
	bool huge = arena->is_huge || size >= LARGE;
	struct arena_chunk *chunk;

	size += sizeof(*chunk);
	if (huge)
		size = huge_pages_size(size);
	chunk = huge ? huge_pages_map(size) : calloc(1, size);
	if (!chunk)
		return -1;
	chunk->is_huge = huge;
	chunk->size = size - sizeof(*chunk);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->used = 0;
	arena->size = chunk->size;
	arena->total += chunk->size;
	return 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	uint8_t *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if ((!arena->chunks || arena->size - arena->used < size) &&
	    add_chunk(arena, size > CHUNK ? size : CHUNK))
		return NULL;
	p = arena->chunks->bytes + arena->used;
	arena->used += size;
	return p;
}

void *arena_alloc_line(struct arena *arena, size_t size)
{
	enum { LINE = 64 };
	uintptr_t p = (uintptr_t)arena_alloc(arena, size + LINE - ALIGN);

	return (void *)((p + LINE - 1) & ~(uintptr_t)(LINE - 1));
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);

	if (copy)
		memcpy(copy, text, length);
	return copy;
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		if (chunk->is_huge)
			huge_pages_unmap(chunk, sizeof(*chunk) + chunk->size);
		else
			free(chunk);
	}
	*arena = (struct arena){ .is_huge = arena->is_huge };
}
