/* The memory of a guest, read from outside: out of the process that runs it where we may, else
 * through libvirt. Where it is and what page tables are in use is told by QEMU's monitor here, and
 * without it by vm_search. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "guest/guest_kernel.h"
#include "guest/guest_memory.h"
#include "host/machine/roots.h"
#include "host/vm/monitor_text.h"

struct domain_link;

enum { VM_MEMORY_RANGES = 128 };

struct vm_memory {
	struct domain_link *link;
	const char *uuid;
	pid_t pid; /* of the process; 0: it is not here */
	int file;  /* /proc/PID/mem; -1: by libvirt */
	/* RAM that was plugged in is in no range. It may lie between the last one and this address,
	 * and reading it fails. */
	uint64_t unknown_end;
	size_t count; /* of ranges, in order; others are not looked at */
	struct vm_memory_range {
		struct monitor_range guest;
		uint64_t address; /* in the process */
	} ranges[VM_MEMORY_RANGES];
	size_t root_count;
	struct page_root page_roots[GUEST_KERNEL_ROOTS];
};

/**
 * Ask for all of it. The guest is neither stopped nor asked.
 *
 * @link  not read-only; borrowed, as `uuid` is, until vm_memory_close()
 * @uuid  of a running domain
 * @ret   release with vm_memory_close(), also after a failure
 *
 * Returns 0, -PTVM_NOT_FOUND (no vCPU in 64-bit mode, or no memory), -PTVM_BAD_USAGE (encrypted
 * memory) or -PTVM_SYSTEM.
 */
int vm_memory_open(const struct roots *roots, struct domain_link *link, const char *uuid,
		   struct vm_memory *ret, struct ptvm_error *error);

/**
 * Only open the process's memory: ranges and page tables are for the caller to fill in.
 *
 * Returns 0, -PTVM_NOT_FOUND or -PTVM_BAD_INPUT (no process that runs a machine), -PTVM_BAD_USAGE
 * (encrypted memory) or -PTVM_SYSTEM; vm_memory_close() in any case.
 */
int vm_memory_open_process(const struct roots *roots, pid_t pid, struct vm_memory *ret,
			   struct ptvm_error *error);

/** What reads it; `memory` must stay where it is meanwhile. */
struct guest_memory vm_memory_reader(struct vm_memory *memory);

/** Accepts what vm_memory_open() left. */
void vm_memory_close(struct vm_memory *memory);
