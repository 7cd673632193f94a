/* The directory of a recording as it is made. What was there before becomes NAME.old, but not
 * before there is something to keep: until then a recording that fails leaves all as it was. */
#pragma once

#include <limits.h>

#include "decode/base/directory.h"
#include "decode/base/error.h"

/** Zero-initialise before use. */
struct recording_directory {
	char path[PATH_MAX]; /* empty: none */
	/* Where what was there before is now; empty: nowhere, or not ours to move any more. */
	char aside[PATH_MAX + DIRECTORY_SUFFIX_BYTES];
	int lock; /* a descriptor; 0: none */
};

/**
 * Make it, for its owner alone, and lock it. A recording of this name is put aside; what holds
 * anything else, there or as NAME.old, is in the way, and stays, and so does one that is locked.
 *
 * Returns 0, -PTVM_BAD_USAGE (no such path can be) or -PTVM_SYSTEM.
 */
int recording_directory_make(const char *path, struct recording_directory *ret,
			     struct ptvm_error *error);

/**
 * Something is recorded: the recording that was put aside becomes NAME.old, in the place of an
 * older one, which is removed. Does so once.
 *
 * Returns 0 or -PTVM_SYSTEM: it stays where it is.
 */
int recording_directory_keep(struct recording_directory *directory, struct ptvm_error *error);

/** The path of something in it. Points into `path`. */
const char *recording_directory_file(const struct recording_directory *directory, const char *name,
				     char path[PATH_MAX]);

/** Remove the kernels in it that a recorder was copying when it was killed, and no more. */
void recording_directory_drop_halves(const char *path);

/** Remove it with all that a recording consists of: nothing was recorded. What was put aside gets
 * its name back, and it is unlocked. */
void recording_directory_remove(struct recording_directory *directory);

/** Unlock it. Accepts zeroes. */
void recording_directory_close(struct recording_directory *directory);
