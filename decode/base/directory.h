/* Directories of ours, which somebody else may have exchanged: symbolic links are not followed,
 * since what they lead to is not ours to remove. */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/base/error.h"

enum { DIRECTORY_SUFFIX_BYTES = 16 }; /* room for what is added to the path of one */

/**
 * Take over the path of a directory to make, without slashes at its end.
 * Returns its length, or -PTVM_BAD_USAGE: it is empty, the root, or too long to add a suffix.
 */
int directory_path(const char *path, char ret[PATH_MAX], struct ptvm_error *error);

/**
 * Open a directory.
 *
 * @at    where `name` begins, as for openat()
 * @name  a link of this name does not count
 *
 * Returns it, for the caller to closedir(), or NULL with errno set.
 */
DIR *directory_open(int at, const char *name);

/** Is it "." or ".."? */
bool directory_is_dots(const char *name);

/** Does `name` match one of these patterns, as fnmatch(3) has them? */
bool directory_matches(const char *name, const char *const *patterns, size_t count);

/** Do the names of all that is in a directory match? True where it is no directory. */
bool directory_holds_only(int at, const char *name, const char *const *patterns, size_t count);
