/* A guest's kernel, found in its memory with no help of the guest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "guest/guest_memory.h"
#include "guest/kallsyms_tables.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"
#include "guest/vmcoreinfo.h"

enum { GUEST_KERNEL_ROOTS = 64 /* vCPUs looked at */ };

struct guest_kernel {
	struct guest_memory memory;
	struct page_walk walk;
	struct kernel_image image; /* as it was when it was found */
	uint64_t image_end;        /* modules are after it */
	struct kallsyms_tables symbols;
};

/**
 * Find it by the page tables of a vCPU that map most of it. A vCPU in user mode may use tables
 * where the kernel is hidden (page table isolation): those that belong to them are tried as well.
 *
 * @memory  its context is used until guest_kernel_free()
 * @roots   of the vCPUs; `count` is one or more
 * @ret     stays where it is; release with guest_kernel_free(), also after a failure
 *
 * Returns 0, -PTVM_NOT_FOUND (no Linux kernel, or no symbols in it), -PTVM_BAD_INPUT (too large),
 * -PTVM_NO_MEMORY, or an error of the memory.
 */
int guest_kernel_find(const struct guest_memory *memory, const struct page_root *roots,
		      size_t count, struct guest_kernel *ret, struct ptvm_error *error);

/** The address of a symbol of the kernel itself, 0 if there is none. Linear. */
uint64_t guest_kernel_symbol(const struct guest_kernel *kernel, const char *name);

/**
 * Read the kernel's VMCOREINFO where its variable `vmcoreinfo_data` (kernel/vmcore_info.c) points.
 *
 * @text  takes it with a NUL behind it; empty where there is none
 *
 * Returns 1, 0 where the kernel has no such variable, or an error of the memory; `text` may hold
 * the beginning then.
 */
int guest_kernel_vmcoreinfo(struct guest_kernel *kernel, char text[VMCOREINFO_BYTES + 1],
			    struct ptvm_error *error);

/** Free everything; accepts zeroes. */
void guest_kernel_free(struct guest_kernel *kernel);
