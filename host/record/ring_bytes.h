/* Bytes of a ring that are ready: in one piece, or in two where they go around its end. */
#pragma once

#include <stdint.h>

struct ring_bytes {
	const uint8_t *first, *second;
	uint64_t first_size, second_size;
	uint64_t end; /* what the tail becomes once they are safe */
};
