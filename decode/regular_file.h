/* A file that must be a regular one: its name may come from a recording, and merely opening a
 * device or a FIFO can have effects. */
#pragma once

#include <sys/stat.h>

#include "decode/base/error.h"

/**
 * Open it for reading.
 *
 * @ret  what fstat(2) says of it
 *
 * Returns a file descriptor, -PTVM_SYSTEM or -PTVM_BAD_INPUT (not a regular file).
 */
int regular_file_open(const char *path, struct stat *ret, struct ptvm_error *error);
