/* What a later copy of a kernel's memory has in places where an earlier one has other bytes. Either
 * single instructions were patched, or all was replaced, as where a module came to the place of
 * another one. */
#pragma once

#include <stdbool.h>

#include "decode/base/bytes.h"
#include "decode/image.h"
#include "decode/symbols.h"

/** Pages whose code was replaced. */
struct later_range {
	uint64_t start, end;
	uint64_t since; /* ns of perf's clock: from then on it is that of the later copy;
			 * UINT64_MAX: not known to have been at any time */
	size_t first;   /* range that was replaced at the same time, its own index or a lower one */
};

/** Which copy's code is in the ranges. */
enum later_version {
	LATER_SINCE, /* by their time */
	LATER_NEVER,
	LATER_ALWAYS,
};

struct later_code {
	struct image image; /* pages that are not as in the earlier copy */
	struct {
		struct later_change {
			uint64_t start, end;
		} * items; /* that differ, by address; does not overlap */
		size_t count, room;
	} changes;
	struct {
		struct later_range *items; /* by address; does not overlap */
		size_t count, room;
	} ranges;
	enum later_version version;
	/* Called with its context before a range's time or version is looked at; NULL: nobody has
	 * to find out first. */
	void (*settle)(void *context);
	void *settle_context;
};

/**
 * Compare a page of the later copy with the same bytes of the earlier one, and keep it (borrowed)
 * if they differ. Pages come in rising order of their addresses.
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int later_code_add(struct later_code *later, uint64_t address, const uint8_t *before,
		   struct bytes after);

/**
 * A module is loaded as a whole: have the ranges cut where another module of the later copy begins,
 * and those of one module be replaced at the same time. Once, when all pages are there.
 *
 * @symbols  of the later copy's modules
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int later_code_group(struct later_code *later, const struct symbols *symbols);

/** The bytes of the later copy from `address` on, if some of the first `size` differ and it is not
 * in one of the ranges; no bytes otherwise. */
struct bytes later_code_find(const struct later_code *later, uint64_t address, size_t size);

/** The first range that ends behind `address`; NULL: none does. */
struct later_range *later_code_range(const struct later_code *later, uint64_t address);

/** Since when a range has the later copy's code in the present version. */
uint64_t later_code_since(const struct later_code *later, const struct later_range *range);

/** Free the lists; accepts zeroes. */
void later_code_free(struct later_code *later);
