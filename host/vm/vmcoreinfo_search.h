/* VMCOREINFO in the memory of a process that runs a guest: pages that the guest's kernel, or
 * anybody in the guest, may have written. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "guest/vmcoreinfo.h"
#include "host/machine/roots.h"

struct ram_mappings;

enum { VMCOREINFO_FOUND = 16 /* different ones; more are not looked at */ };

struct vmcoreinfo_list {
	struct vmcoreinfo items[VMCOREINFO_FOUND]; /* each once */
	size_t count;
};

/**
 * Search for all of them. Pages that nobody touched are not read, since that would give the process
 * memory that it does not need. Those of a file are, but only where nothing else is found.
 *
 * @memory  /proc/PID/mem, open
 *
 * Returns 0, also where there is none, -PTVM_NO_MEMORY or -PTVM_SYSTEM (the process has ended).
 * Takes as long as reading all of it.
 */
int vmcoreinfo_search(const struct roots *roots, pid_t pid, int memory,
		      const struct ram_mappings *mappings, struct vmcoreinfo_list *ret,
		      struct ptvm_error *error);
