/* Which functions may be the only probe of a tracepoint, by the kernel's symbols: the probe is then
 * called directly (static calls, kernel/tracepoint.c), and a direct call is in no packet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/symbols.h"

enum { PROBES_MAX = 8 }; /* of one tracepoint */

struct probe_entry {
	uint64_t callee;             /* what is called where there are several probes, or none */
	uint64_t probes[PROBES_MAX]; /* the likeliest first */
	unsigned count;
};

/** Zero-initialise before use. */
struct probe_table {
	struct probe_entry *items; /* by callee, each with at least one probe */
	size_t count, room;
};

/**
 * Read the finished symbols of a kernel.
 *
 * A probe is named for the class of its event, and that for the event or for several of them; where
 * no class has the event's name, it is one that was made from the same file.
 *
 * @ret  release with probe_table_free(), also after a failure
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int probe_table_read(const struct symbols *symbols, struct probe_table *ret);

/** The entry of the function that a tracepoint calls, or NULL. */
const struct probe_entry *probe_table_find(const struct probe_table *table, uint64_t callee);

/** Free the entries; accepts zeroes. */
void probe_table_free(struct probe_table *table);
