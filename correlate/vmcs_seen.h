/* What one queue tells about the guests in it: for each VMCS, how its TSC relates to the host's.
 *
 * Host and guests share the crystal clock. Counted from a TSC packet of the host, it gives the
 * host's time at any TSC packet of a guest; counted from one of a guest, the guest's time at the
 * host's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "correlate/tsc_run.h"
#include "correlate/tsc_walk.h"

/** A TSC packet of a guest dated only roughly: by when the kernel says that tracing ended. */
struct tsc_rough {
	bool valid;
	uint64_t host, guest; /* at one edge of the crystal; host within a millisecond or so */
	uint16_t ctc;
	size_t queue;
};

struct vmcs_seen {
	uint64_t vmcs;
	struct {
		struct tsc_run *items; /* in order of time; the last still grows */
		size_t count, room;
	} runs;
	bool have_pending; /* an observation that is not of the last run */
	struct tsc_run pending;
	struct tsc_rough rough;
	uint64_t packets;     /* guest TSC packets */
	uint64_t without_tma; /* of them */
	uint64_t outliers;    /* observations that agreed with no other */
	uint64_t first_host;  /* about when it was first seen; 0 unknown */
	size_t queue;         /* where */
};

/** A TSC packet of the host, which tells what time it is whenever the crystal shows some count. */
struct tsc_phase {
	bool valid;
	uint64_t host; /* at an edge of the crystal */
	uint16_t ctc;
};

/** An observation that waits for the host's next TSC to confirm it. */
struct tsc_waiting {
	struct tsc_pair pair;
	uint64_t vmcs;
};

enum { TSC_WAITING_MAX = 256 };

/** Zero-initialise; vmcs_table_free() when done. */
struct vmcs_table {
	struct {
		struct vmcs_seen *items;
		size_t count, room;
	} seen;
	struct tsc_phase phase;
	uint64_t packets; /* TSC packets, of host and guests */
	uint64_t no_vmcs; /* guest TSC packets of which no VMCS is known */
	uint64_t dropped; /* and those of more VMCSs than are kept */
	struct tsc_waiting waiting[TSC_WAITING_MAX];
	size_t waiting_count;
};

/** What walks in several threads share. */
struct vmcs_walks {
	struct bytes mapping; /* of the trace, see tsc_walk_init() */
	uint64_t done;        /* bytes, of all queues; atomic */
	bool stop;            /* atomic */
};

/**
 * Walk a queue and collect. Memory is bounded by the number of VMCSs and of changes, both limited.
 *
 * @number    of the queue, to be kept with what is seen
 * @walks     shared between threads
 *
 * Returns 0, -PTVM_NO_MEMORY, or -PTVM_END when it was stopped.
 */
int vmcs_table_collect(struct vmcs_table *table, const struct aux_queue *queue, size_t number,
		       const struct pt_config *config, struct vmcs_walks *walks);

/** Take over what another queue tells; in any order, with the same result. Returns 0 or
 * -PTVM_NO_MEMORY. */
int vmcs_table_merge(struct vmcs_table *table, const struct vmcs_table *from);

/** Release everything. */
void vmcs_table_free(struct vmcs_table *table);
