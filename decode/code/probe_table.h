/* Which functions may be the only probe of a tracepoint, by the kernel's symbols: the probe is then
 * called directly (static calls, kernel/tracepoint.c), and a direct call is in no packet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/code/symbols.h"

enum { PROBES_MAX = 8 }; /* of one tracepoint */

/** Whose the probes are. */
enum probe_user {
	PROBE_FTRACE,
	PROBE_PERF,
	PROBE_BPF,
	PROBE_USERS_OF_CLASSES, /* those above have one probe for each class of events */
	PROBE_FTRACE_SYSCALLS = PROBE_USERS_OF_CLASSES,
	PROBE_PERF_SYSCALLS,
	PROBE_COMMANDS, /* ftrace's, which remembers what threads are called */
	PROBE_GRAPH,    /* of the function graph tracer */
	PROBE_USERS,
};

struct probe_entry {
	uint64_t callee;   /* the iterator, or a trampoline to what is called */
	uint64_t iterator; /* what is called where there are several probes, or none */
	struct {
		uint64_t address;
		enum probe_user user;
	} probes[PROBES_MAX]; /* the likeliest first */
	unsigned count;
	uint32_t unit; /* the same for events of one header, and not 0 */
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

/**
 * What a tracepoint calls where it is switched on together with others of its unit, for one user; 0
 * where that user has no probe for it. A tracepoint that ftrace remembers the names of threads by
 * then has two.
 */
uint64_t probe_entry_of(const struct probe_entry *entry, enum probe_user user);

/** Free the entries; accepts zeroes. */
void probe_table_free(struct probe_table *table);
