/* A guest's physical memory with page tables, made piece by piece. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest_memory.h"
#include "guest/page_walk.h"

enum { FAKE_MEMORY_PAGE = 4096 };

/** Rights of a mapping, as bits of an entry. */
#define FAKE_MEMORY_USER (UINT64_C(1) << 2)
#define FAKE_MEMORY_LARGE (UINT64_C(1) << 7)
#define FAKE_MEMORY_DATA (UINT64_C(1) << 63) /* not to be executed */

struct fake_memory {
	uint8_t *data;
	size_t size, used;
	struct guest_memory reader; /* of all this */
	struct page_root root;      /* the tables that fake_memory_map() changes */
	bool fails;                 /* reading does, from now on */
};

/** Make one of `size` bytes; asserts that it works. */
void fake_memory_init(struct fake_memory *memory, size_t size, bool is_5_level);

/** Free it. */
void fake_memory_deinit(struct fake_memory *memory);

/** Take the next whole pages, which are zero. Returns where they are. */
uint64_t fake_memory_take(struct fake_memory *memory, size_t size);

/** The entry of `level` (1: of 4 KiB pages) for an address; tables above it are made. */
uint64_t *fake_memory_entry(struct fake_memory *memory, uint64_t address, unsigned level);

/** Map pages of 4 KiB. */
void fake_memory_map(struct fake_memory *memory, uint64_t address, uint64_t physical, size_t size,
		     uint64_t rights);

/** Put data where `address` will be, in pages of its own. Returns where it is in `data`. */
uint8_t *fake_memory_put(struct fake_memory *memory, uint64_t address, const void *data,
			 size_t size, uint64_t rights);
