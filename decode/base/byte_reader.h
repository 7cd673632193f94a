/* Reads bytes from front to back. With what does not fit they end: reading goes on, but gives no
 * bytes, and zeroes for numbers. */
#pragma once

#include "decode/base/bytes.h"

struct byte_reader {
	struct bytes left;
	bool is_bad; /* something did not fit; callers may have other reasons */
};

/** The next `size` bytes. */
static inline struct bytes byte_reader_take(struct byte_reader *reader, uint64_t size)
{
	const bool fits = size <= reader->left.size;
	struct bytes taken = bytes_slice(reader->left, 0, fits ? size : 0);

	reader->is_bad |= !fits;
	reader->left = bytes_slice(reader->left, size, reader->left.size);
	return taken;
}

/** The next `size` bytes (0 to 8) as a number. */
static inline uint64_t byte_reader_number(struct byte_reader *reader, unsigned size)
{
	return bytes_number(byte_reader_take(reader, size), 0, size);
}

/** As many bytes as the number before them says, which has `size` bytes itself. */
static inline struct bytes byte_reader_sized(struct byte_reader *reader, unsigned size)
{
	return byte_reader_take(reader, byte_reader_number(reader, size));
}
