/* CPUs, as the kernel lists them in /sys/devices/system/cpu: 0-3,8 and so on. There may be hundreds
 * of ranges, where each other thread of a core is off. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/machine/roots.h"

/** Zero-initialise before use; vec_free() when done. */
struct cpu_list {
	int *items;
	size_t count, room;
};

/**
 * Read a list: "online", "present".
 * Returns 0; -PTVM_NOT_FOUND, there is none; or -PTVM_NO_MEMORY. Nothing is in `ret` then.
 */
int cpu_list_read(const struct roots *roots, const char *name, struct cpu_list *ret);

/** The place of a CPU in a list, or that behind the last. */
size_t cpu_list_find(const struct cpu_list *list, int cpu);

static inline bool cpu_list_has(const struct cpu_list *list, int cpu)
{
	return cpu_list_find(list, cpu) < list->count;
}
