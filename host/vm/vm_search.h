/* A guest's RAM and page tables, found in the process that runs it, with no help of either: by the
 * VMCOREINFO of its kernel, for a layout of RAM in which all that follows from it comes true. */
#pragma once

#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"
#include "host/vm/vm_memory.h"

/**
 * Search.
 *
 * @pid  of a process that runs a machine
 * @ret  release with vm_memory_close(), also after a failure
 *
 * Returns 0, -PTVM_NOT_FOUND (no kernel with VMCOREINFO, or RAM is nowhere), -PTVM_INCONSISTENT
 * (several kernels, or layouts), -PTVM_BAD_USAGE (encrypted memory), -PTVM_NO_MEMORY, or
 * -PTVM_SYSTEM. Takes as long as reading all RAM that is used, and a second more where kernels of
 * earlier boots are still there.
 */
int vm_search_open(const struct roots *roots, pid_t pid, struct vm_memory *ret,
		   struct ptvm_error *error);
