/* Where a kernel has its code: the addresses worth copying. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct modules;
struct page_walk;
struct symbols;

struct code_range {
	uint64_t start, end; /* whole pages; end exclusive */
};

struct code_ranges {
	struct code_range *items; /* sorted, apart from each other */
	size_t count, room;
	uint64_t kernel_start;    /* _stext */
	struct code_range labels; /* the table, which is no code; in `items`, too. Empty: none */
};

/**
 * Find the text of the kernel, [_stext, _etext], its table of jump labels, and that of modules and
 * of what else has symbols in their area, as BPF programs. Ranges that are near each other are made
 * one.
 *
 * @ret  release with code_ranges_free(), also after a failure
 *
 * Returns 0, -PTVM_BAD_INPUT (no or impossible _stext and _etext) or -PTVM_NO_MEMORY.
 */
int code_ranges_find(const struct symbols *symbols, const struct modules *modules,
		     struct code_ranges *ret, struct ptvm_error *error);

/**
 * Append the pages of [`start`, `end`), which is not empty. Returns 0 or -PTVM_NO_MEMORY.
 */
int code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end);

/**
 * Append the kernel's table of jump labels, which tells for sure which of its code may change, from
 * __start___jump_table to __stop___jump_table; nothing if there is none, or it cannot be one.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int code_ranges_add_labels(struct code_ranges *ranges, uint64_t start, uint64_t end);

/**
 * Append what the kernel can execute from `start` on, which is after its image: modules, and pages
 * that nothing else tells of, as thunks of indirect branches (its_alloc() of
 * arch/x86/kernel/alternative.c). Returns 0, -PTVM_NO_MEMORY or an error of the memory.
 */
int code_ranges_add_pages(struct code_ranges *ranges, struct page_walk *walk, uint64_t start,
			  struct ptvm_error *error);

/** Sort, and make ranges that are near each other one. */
void code_ranges_join(struct code_ranges *ranges);

/** Free everything. */
void code_ranges_free(struct code_ranges *ranges);
