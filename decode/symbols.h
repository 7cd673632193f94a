/* Address -> name and offset: one sorted table of symbols. Knows no file format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"

struct symbol {
	uint64_t start, end; /* end exclusive; 0 or == start until symbols_finish() */
	const char *name;    /* in the table's arena, or in memory that outlives the table */
	bool is_global, is_weak;
};

struct symbols {
	struct symbol *items; /* sorted by start and without doubles once finished */
	size_t count, room;
	struct arena names;
};

/** Append one; symbols_finish() sorts. Returns 0 or -PTVM_NO_MEMORY. */
int symbols_add(struct symbols *symbols, const struct symbol *symbol);

/**
 * Sort, keep of doubles the one that perf keeps, and give symbols without an end one as perf
 * does (`is_kallsyms`: the last of the kernel or of a module ends within its page).
 */
void symbols_finish(struct symbols *symbols, bool is_kallsyms);

/** The symbol that holds `address`, or NULL. O(log n). */
const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address);

/** Free everything. */
void symbols_free(struct symbols *symbols);
