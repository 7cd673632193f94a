/* Can this host trace its guests? */
#pragma once

#include "host/check_list.h"
#include "host/machine/roots.h"

/**
 * Look at the CPU, the kernel, our rights, and the room for a recording in `directory`.
 * Everything may be missing; each item is told all the same.
 */
void check_host(const struct roots *roots, const char *directory, struct check_list *list);
