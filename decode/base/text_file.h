/* Reads a whole text file into memory: one of /proc, or a copy of one. Files in /proc do not say
 * how long they are. */
#pragma once

#include <stddef.h>

#include "decode/base/arena.h"
#include "decode/base/error.h"

/**
 * Read a regular file into `arena`; a newline is added where the last line has none.
 * Returns 0, -PTVM_SYSTEM, -PTVM_BAD_INPUT (not a regular file, or above 256 MiB) or
 * -PTVM_NO_MEMORY.
 */
int text_file_read(const char *path, struct arena *arena, char **ret_text, size_t *ret_size,
		   struct ptvm_error *error);
