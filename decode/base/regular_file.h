/* Opens a file only if it is a regular one. Its name may come from a recording, and merely opening
 * a device or a FIFO can have effects. */
#pragma once

#include <sys/stat.h>

#include "decode/base/error.h"

/**
 * Open it for reading.
 *
 * @ret  its status, as fstat(2) gives it
 *
 * Returns a file descriptor, -PTVM_SYSTEM or -PTVM_BAD_INPUT (not a regular file).
 */
int regular_file_open(const char *path, struct stat *ret, struct ptvm_error *error);
