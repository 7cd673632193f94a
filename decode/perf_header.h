/* The front of a recording: which form it has, where its parts lie, its events and features. */
#pragma once

#include "decode/perf_data.h"

/**
 * Whether a recording begins with these bytes, by its magic. @path names it in messages.
 * Returns 0, or -PTVM_BAD_INPUT with what is wrong.
 */
int perf_header_check(struct bytes start, const char *path, struct ptvm_error *error);

/**
 * Read the header of data->file and all that it points to. Damaged attrs and features are counted
 * in `bad_features` and left out.
 * Returns 0, -PTVM_BAD_INPUT (not a recording, or of the other byte order) or -PTVM_NO_MEMORY.
 */
int perf_header_read(struct perf_data *data, struct ptvm_error *error);
