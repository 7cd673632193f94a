/* The directory that a guest is copied to: made beside its place and put there when complete, so
 * that there is always a whole copy or none. */
#pragma once

#include <limits.h>

#include "decode/base/error.h"

struct output_directory {
	char path[PATH_MAX]; /* where it will be */
	char work[PATH_MAX]; /* where it is; empty: nowhere */
};

/**
 * Make one, for its owner alone. Returns 0, -PTVM_BAD_USAGE (no such path can be) or -PTVM_SYSTEM.
 */
int output_directory_make(const char *path, struct output_directory *ret, struct ptvm_error *error);

/** The path of a file in it: kcore, kallsyms, modules or guest.json. Points into `path`. */
const char *output_directory_file(const struct output_directory *directory, const char *name,
				  char path[PATH_MAX]);

/** Remove what is in it. */
void output_directory_clear(const struct output_directory *directory);

/**
 * Put it in its place; what was there is renamed to PATH.old, and an older copy of that name is
 * removed. Returns 0 or -PTVM_SYSTEM.
 */
int output_directory_keep(struct output_directory *directory, struct ptvm_error *error);

/** Remove it, unless it was kept; accepts zeroes. */
void output_directory_drop(struct output_directory *directory);
