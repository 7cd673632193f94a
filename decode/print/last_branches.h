/* The branches that a thread took last, newest first, and how perf writes them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/text.h"

/** As in the kernel's perf_branch_entry. */
struct branch_entry {
	uint64_t from, to, flags;
	bool from_guest, to_guest;
};

/** Bits of `flags` that are shown. */
enum {
	BRANCH_ENTRY_MISSED = 1 << 0,
	BRANCH_ENTRY_PREDICTED = 1 << 1,
	BRANCH_ENTRY_IN_TX = 1 << 2,
	BRANCH_ENTRY_ABORT = 1 << 3,
};

/** Zero-initialise before use. */
struct last_branches {
	struct branch_entry *items; /* a ring */
	unsigned size;              /* how many are kept; 0: not known yet */
	unsigned next, count;       /* where the next one goes; how many there are */
};

/** Keep a branch, of the last `size` (at least 1). Without memory it is forgotten. */
void last_branches_add(struct last_branches *branches, unsigned size, struct branch_entry entry);

/** The branch that was `back` before the last one, less than `count`. */
static inline const struct branch_entry *last_branch(const struct last_branches *branches,
						     unsigned back)
{
	return &branches->items[(branches->next + branches->size - 1 - back) % branches->size];
}

/** Append a branch as " from(dso)/to(dso)/flags/cycles/ "; `dsos` NULL: without them. */
void branch_entry_text(struct text *text, const struct branch_entry *entry,
		       const char *const dsos[2]);

/** Forget all and release the memory; accepts zeroes. */
void last_branches_free(struct last_branches *branches);
