/* Where the tracepoints of a kernel are in its code: for each the jump labels that switch it on,
 * and behind those the calls of its probes. Those of one header (include/trace/events) are a group:
 * one command switches them all on, each with the probe of the same user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/patched_insn.h"
#include "decode/code/probe_table.h"

struct machine;

struct tracepoint_site {
	uint64_t ip;
	const struct probe_entry *entry; /* of the tracepoint, or one of the same unit */
	uint64_t copied;                 /* where the instruction leads in the copy */
	uint64_t target;                 /* of a label: where it leads when it is on; 0: a call */
	uint64_t call;                   /* of a label: the call that is there; 0: there is none */
	uint8_t size;                    /* of the instruction */
	uint8_t unlikely;                /* of a label that leads to the call; 0 is the likeliest */
	bool is_doubtful;                /* another label is likelier: it belongs to no group */
};

/** Zero-initialise before use. */
struct tracepoint_table {
	struct tracepoint_site *items; /* by ip */
	size_t count, room;
};

/** The tracepoints of one group, all of them on with one user's probes, or off. */
struct tracepoint_group {
	const struct tracepoint_table *table; /* NULL: no group */
	uint32_t unit;                        /* as in struct probe_entry */
	uint8_t user;                         /* enum probe_user */
	bool is_on;
};

/**
 * Find the tracepoints in a kernel's own code, not that of its modules.
 *
 * @probes  of the same machine; must outlive `ret`
 * @ret     release with tracepoint_table_free(), also after a failure
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int tracepoint_table_read(struct machine *machine, const struct probe_table *probes,
			  struct tracepoint_table *ret);

/** What belongs to a tracepoint at `ip`, or NULL. */
const struct tracepoint_site *tracepoint_table_find(const struct tracepoint_table *table,
						    uint64_t ip);

/** Whether a group changes what is at a site. */
bool tracepoint_group_has(const struct tracepoint_group *group, const struct tracepoint_site *site);

/** What a group makes of one of its sites. False: it is there as copied. */
bool tracepoint_group_insn(const struct tracepoint_group *group, const struct tracepoint_site *site,
			   struct patched_insn *ret);

/** Free the sites; accepts zeroes. */
void tracepoint_table_free(struct tracepoint_table *table);
