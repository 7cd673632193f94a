/* Names that end in a number, such as kcore_dir__106 or vcpu0, and the files of a directory that
 * have such names, such as those of processes in /proc. */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "decode/base/cleanup.h"

/** The number behind `prefix` that ends a name, in decimal digits; false where it is none of that
 * kind, or none of an int. */
bool numbered_read(const char *name, const char *prefix, int *ret);

struct numbered_files {
	DIR *directory; /* NULL: there is none, and so no files */
	const char *prefix;
};

/** Open a directory; numbered_files_close() it in any case. errno says why there is none. */
struct numbered_files numbered_files_open(const char *path, const char *prefix);

/** The number of the next such file, in no order; false after the last. */
bool numbered_files_next(const struct numbered_files *files, int *ret);

/** Accepts one that could not be opened. */
void numbered_files_close(const struct numbered_files *files);
#define _cleanup_numbered_ _cleanup_(numbered_files_close)
