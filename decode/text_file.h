/* A whole text file in memory, for files of /proc's formats (also those in /proc, which tell no
 * size beforehand). */
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
