/* What is to be written where in a queue, so that guest time stamps become the host's. */
#pragma once

#include "correlate/tsc_chain.h"
#include "correlate/tsc_offsets.h"

/** A time stamp that changes. */
struct tsc_patch {
	uint64_t position; /* in the queue's stream */
	uint8_t size;      /* bytes, 4 to 8 */
	uint64_t value;    /* the low bytes of it */
};

/** A walk over a queue that finds them. */
struct tsc_patches {
	const struct tsc_offsets *offsets;
	const struct pt_config *config;
	struct tsc_walk walk;
	struct tsc_chain chain;
	int64_t tolerance;
	uint64_t left; /* guest time stamps without an offset, so far */
};

/** Begin to walk a queue as tsc_walk_init() does; all that is pointed to must outlive the walk. */
void tsc_patches_init(struct tsc_patches *patches, const struct tsc_offsets *offsets,
		      const struct aux_queue *queue, const struct pt_config *config,
		      struct bytes mapping);

/** The next time stamp that is another in the host's time. Returns 0, or -PTVM_END. */
int tsc_patches_next(struct tsc_patches *patches, struct tsc_patch *ret);
