/* The map that a kernel of x86-64 has of all RAM, one address for each physical one
 * (Documentation/arch/x86/x86_64/mm.rst). It tells how much RAM there is and where, and as it is
 * read by way of page tables all over that RAM, whether memory is where it is thought to be. */
#pragma once

#include <stdint.h>

#include "decode/base/error.h"

struct guest_memory;
struct vmcoreinfo;

/** Ends of what is mapped, guest-physical. Each begins as RAM of a PC does; 0: there is none. */
struct direct_map {
	uint64_t low_end;  /* of what begins at 0 and ends below 4 GiB */
	uint64_t high_end; /* of what begins at 4 GiB and has no large hole */
	uint64_t end;      /* of all, with what was plugged in later */
};

/**
 * Read it, after making sure that the kernel is where `info` says: that it maps its own page tables
 * there, and that its name is that of `info`.
 *
 * Returns 0, -PTVM_NOT_FOUND (no such kernel, or no such map, in memory as it is thought to be; no
 * story is told of it) or an error of the memory. Takes one step for each 2 MiB, 8 TiB at most.
 */
int direct_map_read(const struct guest_memory *memory, const struct vmcoreinfo *info,
		    struct direct_map *ret, struct ptvm_error *error);
