#include "decode/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/huge_pages.h"
#include "decode/base/spool.h"

enum {
	CHUNK = 256 << 10,
	CHUNK_MOST = 2 * SPOOL_FROM, /* of a spooled arena, whose chunks are half of what it has */
	LARGE = HUGE_PAGE / 2,       /* what is not smaller lies in huge pages in any case */
	ALIGN = 16,
	LINE = 64, /* of the cache */
};

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	enum { IN_HEAP, IN_HUGE_PAGES, IN_SPOOL } place;
	_Alignas(16) uint8_t bytes[];
};

static size_t chunk_size(const struct arena *arena, size_t size)
{
	size_t least = CHUNK;

	if (arena->is_spooled && arena->total / 2 > least)
		least = arena->total / 2 < CHUNK_MOST ? arena->total / 2 : CHUNK_MOST;
	return size > least ? size : least;
}

static struct arena_chunk *chunk_in_spool(const struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = spool_new(size);

	if (chunk)
		chunk->place = IN_SPOOL;
	arena_rest(arena);
	return chunk;
}

/* A chunk of `size` bytes in all, which become more where it takes whole pages. */
static struct arena_chunk *new_chunk(const struct arena *arena, size_t *size)
{
	struct arena_chunk *chunk;

	if (arena->is_spooled && *size >= SPOOL_FROM)
		return chunk_in_spool(arena, *size);
	if (!arena->is_huge && *size < LARGE)
		return calloc(1, *size);
	*size = huge_pages_size(*size);
	chunk = huge_pages_map(*size);
	if (chunk)
		chunk->place = IN_HUGE_PAGES;
	return chunk;
}

static int add_chunk(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk;

	size = chunk_size(arena, size) + sizeof(*chunk);
	chunk = new_chunk(arena, &size);
	if (!chunk)
		return -1;
	chunk->size = size - sizeof(*chunk);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->used = 0;
	arena->size = chunk->size;
	arena->total += chunk->size;
	return 0;
}

/* Bytes that must be left out for what comes next to be aligned, a power of two. */
static size_t padding(const struct arena *arena, size_t align)
{
	return -(uintptr_t)(arena->chunks->bytes + arena->used) & (align - 1);
}

static void *alloc_aligned(struct arena *arena, size_t size, size_t align)
{
	uint8_t *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if ((!arena->chunks || arena->size - arena->used < padding(arena, align) + size) &&
	    add_chunk(arena, size + align - ALIGN))
		return NULL;
	arena->used += padding(arena, align);
	p = arena->chunks->bytes + arena->used;
	arena->used += size;
	return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	return alloc_aligned(arena, size, ALIGN);
}

void *arena_alloc_line(struct arena *arena, size_t size)
{
	return alloc_aligned(arena, size, LINE);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);

	if (copy)
		memcpy(copy, text, length);
	return copy;
}

void arena_rest(const struct arena *arena)
{
	for (const struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
		if (chunk->place == IN_SPOOL)
			spool_rest(chunk, sizeof(*chunk) + chunk->size);
}

static void free_chunk(struct arena_chunk *chunk)
{
	switch (chunk->place) {
	case IN_HEAP: free(chunk); break;
	case IN_HUGE_PAGES: huge_pages_unmap(chunk, sizeof(*chunk) + chunk->size); break;
	case IN_SPOOL: spool_free(chunk, sizeof(*chunk) + chunk->size); break;
	}
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free_chunk(chunk);
	}
	*arena = (struct arena){ .is_huge = arena->is_huge, .is_spooled = arena->is_spooled };
}
