/* What of a process's memory may be the RAM of a guest that it runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

enum {
	RAM_MAPPINGS = 65536,        /* as many as Linux allows a process */
	RAM_EXTENTS = 64,            /* the largest ones; others are not looked at */
	RAM_EXTENT_BYTES = 16 << 20, /* no less: Linux does not boot with less */
	RAM_EXTENT_MAPPINGS = 16,    /* at most, of one */
};

struct ram_mapping {
	uint64_t from, to;    /* whole pages */
	bool is_copy_of_file; /* pages that nobody touched are in a file, as after a snapshot */
};

/** Zero-initialise before use. */
struct ram_mappings {
	struct ram_mapping *items; /* in the order of addresses */
	size_t count, room;
	/* Mappings and runs of mappings: the kernel splits one where parts of it are advised or
	 * bound in another way. The largest first. */
	struct ram_extent {
		uint64_t from, to;
	} extents[RAM_EXTENTS];
	size_t extent_count;
};

/**
 * Read /proc/PID/maps. Takes what can be written and not executed, of any kind: anonymous memory,
 * memfd, files, huge pages.
 *
 * Returns 0, -PTVM_NO_MEMORY or -PTVM_SYSTEM; ram_mappings_free() in any case.
 */
int ram_mappings_read(const struct roots *roots, pid_t pid, struct ram_mappings *ret,
		      struct ptvm_error *error);

/** Accepts zeroes. */
void ram_mappings_free(struct ram_mappings *mappings);
