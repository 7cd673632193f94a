/* Where two copies of a kernel's memory differ, and what the later one has there. Either single
 * instructions were patched, or all was replaced, for instance when a module was loaded where
 * another one had been. */
#pragma once

#include <stdbool.h>

#include "decode/base/bytes.h"
#include "decode/code/image.h"
#include "decode/code/symbols.h"

/** Pages whose code was replaced. */
struct later_range {
	uint64_t start, end;
	uint64_t since; /* ns of perf's clock: from then on it is that of the later copy;
			 * UINT64_MAX: not known to have been at any time */
	size_t first;   /* index of the first range that was replaced at the same time: this one, or
			 * one before it */
};

/** Which copy's code is taken for that of the ranges. */
enum later_version {
	LATER_SINCE,  /* the later one's from the range's `since` on */
	LATER_NEVER,  /* the earlier one's, to try it out */
	LATER_ALWAYS, /* the later one's, to try it out */
};

struct later_code {
	struct image image; /* pages that are not as in the earlier copy */
	struct {
		struct later_change {
			uint64_t start, end;
		} * items; /* bytes that differ, by address; they do not overlap */
		size_t count, room;
	} changes;
	struct {
		struct later_range *items; /* by address; they do not overlap */
		size_t count, room;
	} ranges;
	enum later_version version;
	/* Called with its context before `since` of a range is used, to find it out; NULL: it is
	 * known. */
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
 * A module is loaded as a whole: cut the ranges where another module of the later copy begins, and
 * give those of one module the same `first`. To be called once, when all pages have been added.
 *
 * @symbols  of the later copy's modules
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int later_code_group(struct later_code *later, const struct symbols *symbols);

/** The bytes of the later copy from `address` on, if some of the first `size` differ and it is not
 * in one of the ranges; no bytes otherwise. */
struct bytes later_code_find(const struct later_code *later, uint64_t address, size_t size);

/** The first range that ends behind `address`, which may be in it; NULL: there is none. */
struct later_range *later_code_range(const struct later_code *later, uint64_t address);

/** The time from which on a range has the later copy's code, by `version`: ns of perf's clock, 0
 * for always, UINT64_MAX for never. */
uint64_t later_code_since(const struct later_code *later, const struct later_range *range);

/** Free the lists; accepts zeroes. */
void later_code_free(struct later_code *later);
