/* What a later copy of a kernel's memory has in places where an earlier one has other bytes. */
#pragma once

#include "decode/base/bytes.h"
#include "decode/image.h"

struct later_code {
	struct image image; /* pages that are not as in the earlier copy */
	struct {
		struct later_change {
			uint64_t start, end;
		} * items; /* that differ, by address; does not overlap */
		size_t count, room;
	} changes;
};

/**
 * Compare a page of the later copy with the same bytes of the earlier one, and keep it (borrowed)
 * if they differ. Pages come in rising order of their addresses.
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int later_code_add(struct later_code *later, uint64_t address, const uint8_t *before,
		   struct bytes after);

/** The bytes of the later copy from `address` on, if some of the first `size` differ; no bytes
 * where they do not. */
struct bytes later_code_find(const struct later_code *later, uint64_t address, size_t size);

/** Free the lists; accepts zeroes. */
void later_code_free(struct later_code *later);
