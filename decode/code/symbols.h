/* Address -> name and offset: one sorted table of symbols. Knows no file format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"
#include "decode/code/image.h"

struct symbol {
	uint64_t start, end; /* end exclusive; 0 or == start until symbols_finish() */
	const char *name;    /* in the table's arena, or in memory that outlives the table */
	const char *module;  /* "[kvm]" where kallsyms says so, NULL otherwise */
	bool is_global, is_weak;
};

struct symbols {
	struct symbol *items; /* sorted by start and without doubles once finished */
	size_t count, room;
	/* The doubles that were not kept: found by name only. */
	struct {
		struct symbol *items;
		size_t count, room;
	} aliases;
	struct arena names;
};

/** About so many are going to be added: a large table, if it is empty yet, is made of huge pages.
 */
void symbols_reserve(struct symbols *symbols, size_t count);

/** Append one; symbols_finish() sorts. Returns 0 or -PTVM_NO_MEMORY. */
int symbols_add(struct symbols *symbols, const struct symbol *symbol);

/**
 * Sort, keep of doubles the one that perf keeps, and give symbols without an end one as perf
 * does (`is_kallsyms`: the last before a border of kernel and modules ends a page further on,
 * rounded up). May be called again after more were added; ends already given stay.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int symbols_finish(struct symbols *symbols, bool is_kallsyms);

/** Drop the symbols that do not start in a piece of `image`; the others end with their piece. */
void symbols_clip(struct symbols *symbols, const struct image *image);

/** The symbol that holds `address`, or NULL. O(log n). */
const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address);

/** The start of the symbol of this name, 0 if there is none. Linear. */
uint64_t symbols_address(const struct symbols *symbols, const char *name);

/** Free everything. */
void symbols_free(struct symbols *symbols);
