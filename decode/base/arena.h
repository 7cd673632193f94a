/* Memory that is freed all at once: names, tables, blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

/** Zero-initialise before use. */
struct arena {
	struct arena_chunk *chunks;
	size_t used, size; /* of the newest chunk, bytes */
	size_t total;      /* bytes held from the system */
	bool is_huge;      /* in huge pages: for what is large, and accessed at random */
	bool is_spooled;   /* what is too much for memory lies in files (spool.h) */
};

/** `size` zeroed bytes, aligned to 16; NULL when memory is out. */
void *arena_alloc(struct arena *arena, size_t size);

/** As arena_alloc(), aligned to a cache line of 64 bytes. */
void *arena_alloc_line(struct arena *arena, size_t size);

/** A copy of the first `length` bytes of `text`, NUL added; NULL when memory is out. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);

/** Give the pages of a spooled arena back as far as they lie in files; their content stays. */
void arena_rest(const struct arena *arena);

/** Give everything back; the arena is empty and usable again. */
void arena_free(struct arena *arena);
