/* A regular file mapped read-only. */
#pragma once

#include "decode/base/bytes.h"
#include "decode/base/error.h"

/**
 * Map the whole file; an empty one gives no bytes. Release with mapped_file_close().
 * Returns 0, -PTVM_SYSTEM or -PTVM_BAD_INPUT (not a regular file).
 */
int mapped_file_open(const char *path, struct bytes *ret, struct ptvm_error *error);

/** Unmap; accepts zeroes. */
void mapped_file_close(struct bytes *file);
