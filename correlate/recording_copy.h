/* A recording copied whole, sharing its blocks with the original where the file system can. */
#pragma once

#include <stdbool.h>

#include "correlate/watch.h"
#include "decode/base/error.h"

/**
 * Copy the files and directories in `from` (links are followed), or one file, which is then called
 * `data`, with what ptvm keeps beside it, into the new directory `to`. What was copied is writable
 * by its owner.
 *
 * Returns 0, -PTVM_SYSTEM (as where `to` is there already), -PTVM_BAD_INPUT (no shape of a
 * recording, or `to` lies in it), or -PTVM_END when it was stopped; nothing is left of the copy
 * then.
 */
int recording_copy(const char *from, const char *to, const struct watch *watch,
		   struct ptvm_error *error);

/** Remove a directory with all that is in it. */
void recording_remove(const char *path);
