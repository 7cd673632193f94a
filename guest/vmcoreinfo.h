/* VMCOREINFO: what a Linux kernel tells crash dumps about itself, one page of lines "NAME=VALUE"
 * (kernel/vmcore_info.c, before 6.9 kernel/crash_core.c). It says where the kernel's page tables
 * are, and so leads from bytes of memory to all else, with no register of a vCPU known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/page_walk.h"

enum { VMCOREINFO_BYTES = 4096 /* as the kernel has it; more is cut off */ };

/** What leads to a kernel of x86-64. */
struct vmcoreinfo {
	char release[65];      /* as uname -r prints it */
	uint64_t root_address; /* where the kernel maps its own top table */
	uint64_t uts_address;  /* of a struct uts_namespace, which has the release in it */
	struct page_root root;
};

/** Does a page begin as this text does, whose first line is the release? */
bool vmcoreinfo_begins(const void *page);

/**
 * The VALUE of a NAME; false, and `value` empty, where it is not or does not fit.
 *
 * @text  anybody may have written it
 */
bool vmcoreinfo_value(const char *text, const char *name, char *value, size_t size);

/** Read what leads to the kernel; false where that is not all there, or cannot be. */
bool vmcoreinfo_read(const char *text, struct vmcoreinfo *ret);

/**
 * Is the kernel's top table where the kernel maps it? Only then its tables were found.
 * Returns 0, -PTVM_NOT_FOUND or an error of the memory.
 */
int vmcoreinfo_check_root(const struct vmcoreinfo *info, struct page_walk *walk,
			  struct ptvm_error *error);
