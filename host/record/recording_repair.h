/* A recording whose recorder was killed: all of its data are there, but not what is written at the
 * end, without which perf does not read it. */
#pragma once

#include "decode/base/error.h"

/**
 * Complete a recording, so that perf reads it: say how long the data are, leave out what was half
 * written, and write the index of the trace and the features that were kept beside it
 * (recording_features.h). One that is complete is left as it is. Copies of kernels that were not
 * complete are removed from its directory.
 *
 * @path  its directory, or the perf.data file
 *
 * Returns 0, -PTVM_SYSTEM (also where its recorder is still at work), -PTVM_BAD_INPUT (no
 * recording) or -PTVM_NO_MEMORY.
 */
int recording_repair(const char *path, struct ptvm_error *error);
