/* Build ids: what tells one build of a program from any other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/bytes.h"

struct build_id {
	uint8_t bytes[20], size; /* size 0: none */
};

/** Find the build id in ELF notes of 4-byte alignment; false, and `ret` is none, without one. */
bool build_id_find(struct bytes notes, struct build_id *ret);
