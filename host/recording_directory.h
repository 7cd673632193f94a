/* The directory of a recording as it is made. What was there before is kept as NAME.old. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "decode/base/error.h"

/** Zero-initialise before use. */
struct recording_directory {
	char path[PATH_MAX]; /* empty: none */
	bool has_old;        /* what was there before is NAME.old now */
};

/**
 * Make it, for its owner alone. A recording of this name is renamed to NAME.old, and an older one
 * of that name removed; what holds anything else is in the way, and stays.
 *
 * Returns 0, -PTVM_BAD_USAGE (no such path can be) or -PTVM_SYSTEM.
 */
int recording_directory_make(const char *path, struct recording_directory *ret,
			     struct ptvm_error *error);

/** The path of something in it. Points into `path`. */
const char *recording_directory_file(const struct recording_directory *directory, const char *name,
				     char path[PATH_MAX]);

/** Remove the kernels in it that a recorder was copying when it was killed, and no more. */
void recording_directory_drop_halves(const char *path);

/** Remove it with all that a recording consists of: nothing was recorded. What was there before
 * gets its name back. */
void recording_directory_remove(struct recording_directory *directory);
