/* A read-only view of memory, with bounded little-endian reads. Owns nothing. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "load_le() reads as the CPU does");

struct bytes {
	const uint8_t *data;
	size_t size;
};

/** `count` little-endian bytes (0 to 8) at `p`, which must be readable. */
static inline uint64_t load_le(const uint8_t *p, unsigned count)
{
	uint64_t value = 0;

	memcpy(&value, p, count);
	return value;
}

/** The part of `view` from `offset`, at most `size` bytes; empty where out of bounds. */
static inline struct bytes bytes_slice(struct bytes view, uint64_t offset, uint64_t size)
{
	if (offset >= view.size)
		return (struct bytes){ NULL, 0 };
	if (size > view.size - offset)
		size = view.size - offset;
	return (struct bytes){ view.data + offset, size };
}

/** Read `count` bytes (0 to 8) at `offset` into `ret`; false, and `ret` 0, where out of bounds. */
static inline bool bytes_read(struct bytes view, uint64_t offset, unsigned count, uint64_t *ret)
{
	*ret = 0;
	if (offset > view.size || view.size - offset < count)
		return false;
	*ret = load_le(view.data + offset, count);
	return true;
}

/** The same, where it does not matter whether that is a 0 or out of bounds. */
static inline uint64_t bytes_number(struct bytes view, uint64_t offset, unsigned count)
{
	uint64_t value;

	(void)bytes_read(view, offset, count, &value);
	return value;
}

/** Number `index` of a view as u64s, as bytes_number(). */
static inline uint64_t bytes_word(struct bytes view, uint64_t index)
{
	return bytes_number(view, 8 * index, 8);
}

/** The same as u32s. */
static inline uint32_t bytes_half(struct bytes view, uint64_t index)
{
	return (uint32_t)bytes_number(view, 4 * index, 4);
}
