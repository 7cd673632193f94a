/* Where the files of this host's kernel modules are, which libkmod knows. */
#pragma once

#include <limits.h>

#include "host/machine/roots.h"

struct module_files;

/**
 * Open the index of the running kernel's modules.
 * Returns NULL where there is none, which the calls below accept; else module_files_close() it.
 */
struct module_files *module_files_open(const struct roots *roots);

/** Accepts NULL. */
void module_files_close(struct module_files *files);

/**
 * How records name a module: by the path of its file, or as "[name]" where that is not known.
 *
 * @name  of /proc/modules; shorter than PATH_MAX - 2
 */
void module_files_name(struct module_files *files, const char *name, char ret[PATH_MAX]);
