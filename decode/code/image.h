/* Code bytes seen through one address space: sorted pieces that do not overlap. Owns no bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct image_piece {
	uint64_t start, end; /* addresses, end exclusive (0 means 2^64) */
	const uint8_t *data;
};

struct image {
	struct image_piece *items;
	size_t count, room;
};

/**
 * Add `size` bytes at `start`; what was there before in that range is replaced.
 * Returns 0, -PTVM_BAD_INPUT when the range is empty or wraps, or -PTVM_NO_MEMORY.
 */
int image_add(struct image *image, uint64_t start, const uint8_t *data, uint64_t size);

/** The bytes at `address` and, in `left`, how many there are to the end of their piece; NULL where
 * none are known. */
const uint8_t *image_find(const struct image *image, uint64_t address, size_t *left);

/** The piece that holds `address`, or NULL. O(log n). */
const struct image_piece *image_piece_at(const struct image *image, uint64_t address);

/** Free the list of pieces (not the bytes). */
void image_free(struct image *image);
