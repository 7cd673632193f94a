/* Where a recording's bytes come from: a file, those of a directory, or a pipe. */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Map the recording at `path` ("-": standard input) whole, and set path, directory, file_path,
 * file, mapping and parts of `ret`. What comes from a pipe is kept in an unlinked temporary file.
 * Returns 0, -PTVM_SYSTEM, -PTVM_BAD_INPUT (empty, a directory without a recording, or a pipe that
 * begins as no recording does) or -PTVM_NO_MEMORY.
 */
int perf_file_open(const char *path, struct perf_data *ret, struct ptvm_error *error);

/**
 * The recording where none is named: ptvm.data or, where there is none, perf.data.
 * Returns 0, or -PTVM_NOT_FOUND where neither is in the current directory.
 */
int perf_file_default(const char **ret, struct ptvm_error *error);

/** Go on without the other files in the directory: the header says that they are not part of the
 * recording. */
void perf_file_drop_parts(struct perf_data *data);

/** Undo perf_file_open(), also a half-done one. */
void perf_file_close(struct perf_data *data);
