/* The header of a recording: file or pipe, where its sections are, its events and features. */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Check the magic at the start of a file or pipe.
 *
 * @start  its first bytes
 * @path   its name, for messages
 *
 * Returns 0, or -PTVM_BAD_INPUT: it is too short, is not a recording, or is one of the other byte
 * order or of a version that no perf with Intel PT wrote; the message says which.
 */
int perf_header_check(struct bytes start, const char *path, struct ptvm_error *error);

/**
 * Read the header of data->file and all that it points to. Damaged attrs and features are counted
 * in `bad_features` and left out.
 * Returns 0, -PTVM_BAD_INPUT (not a recording, or of the other byte order) or -PTVM_NO_MEMORY.
 */
int perf_header_read(struct perf_data *data, struct ptvm_error *error);
