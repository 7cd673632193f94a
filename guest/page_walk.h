/* Page tables of x86-64 in a guest's memory: what is mapped where, and the bytes there. 4 and 5
 * levels, pages of 4 KiB, 2 MiB and 1 GiB (Intel SDM volume 3, section 4.5). A guest may have made
 * any tables: a walk ends after as many steps as there are levels, and so many holes are passed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct guest_memory;

enum { PAGE_WALK_BYTES = 4096, PAGE_WALK_LEVELS = 5, PAGE_WALK_ENTRIES = 512 };

/** What a vCPU's registers say about its page tables. */
struct page_root {
	uint64_t cr3;
	bool is_5_level; /* CR4.LA57 */
};

/** Pages that follow each other in both address spaces and have the same rights. */
struct page_run {
	uint64_t address, physical, size; /* whole pages */
	bool is_supervisor, is_executable;
};

struct page_walk {
	const struct guest_memory *memory;
	struct page_root root;
	struct page_table {
		uint64_t address; /* guest-physical; 0: none is kept */
		uint64_t entries[PAGE_WALK_ENTRIES];
	} kept[PAGE_WALK_LEVELS]; /* the last one used of each level */
	uint64_t holes;           /* passed since the tables were read anew */
};

/** Can the kernel execute what is there? */
bool page_run_is_code(const struct page_run *run);

/** Begin. `memory` is borrowed as long as the walk is used. */
void page_walk_init(struct page_walk *walk, const struct guest_memory *memory,
		    struct page_root root);

/** Read tables anew from now on: the guest changes them. */
void page_walk_forget(struct page_walk *walk);

/**
 * Find the first run in [`address`, `end`), whole pages; where a run begins before or ends after
 * them it is cut. Tables that are not in memory map nothing.
 *
 * Returns 1, 0 where nothing more is mapped, -PTVM_BAD_INPUT when the tables have more holes than
 * any kernel's (every entry may lead to the same empty table), or an error of the memory.
 */
int page_walk_next(struct page_walk *walk, uint64_t address, uint64_t end, struct page_run *ret,
		   struct ptvm_error *error);

/**
 * Read at a virtual address; what is not mapped to memory is 0. Returns 0 or an error of
 * page_walk_next().
 */
int page_walk_read(struct page_walk *walk, uint64_t address, void *data, size_t size,
		   struct ptvm_error *error);
