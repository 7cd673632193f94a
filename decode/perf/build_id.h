/* Build ids: bytes in an ELF note that identify one build of a program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decode/base/bytes.h"

enum { BUILD_ID_BYTES = 20, BUILD_ID_TEXT_BYTES = 2 * BUILD_ID_BYTES + 1 };

struct build_id {
	uint8_t bytes[BUILD_ID_BYTES], size; /* size 0: none */
};

/** The first `size` bytes, at most BUILD_ID_BYTES, of those at `bytes`. */
static inline struct build_id build_id_make(const uint8_t *bytes, size_t size)
{
	struct build_id id = { .size = (uint8_t)(size < BUILD_ID_BYTES ? size : BUILD_ID_BYTES) };

	memcpy(id.bytes, bytes, id.size);
	return id;
}

/** Order by size, then by bytes; 0 where both are the same. */
static inline int build_id_compare(const struct build_id *a, const struct build_id *b)
{
	return a->size != b->size ? a->size - b->size : memcmp(a->bytes, b->bytes, a->size);
}

/** Write it in hexadecimal, empty where there is none. Returns `text`. */
const char *build_id_text(const struct build_id *id, char text[BUILD_ID_TEXT_BYTES]);

/** Find the build id in ELF notes of 4-byte alignment; false, and `ret` is none, without one. */
bool build_id_find(struct bytes notes, struct build_id *ret);
