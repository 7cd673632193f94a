/* Where a kernel tells ftrace that a function begins: by a NOP of 5 bytes, behind the ENDBR if
 * there is one. Where somebody wants to know, it is a call of a trampoline instead, which calls a
 * tracer. Trampolines are made of ftrace_caller or ftrace_regs_caller (arch/x86/kernel/ftrace_64.S)
 * when they are needed, so that few copies of a kernel have them: these two stand for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/patched_insn.h"

struct machine;

struct ftrace_site {
	uint64_t ip;
	uint64_t copied; /* where the call leads that is there in the copy; 0: it is a NOP */
};

/** A function that trampolines call. */
struct ftrace_tracer {
	uint64_t address;
	uint64_t caller; /* what its trampoline is made of, */
	uint64_t call;   /* and the instruction in that which calls it; 0: it is the trampoline */
	uint64_t jump; /* to direct calls, which a trampoline of its own is made without; 0: none */
	bool is_for_all; /* functions at once, else only for some */
	bool is_graph;   /* it has the graph's static calls changed */
};

enum { FTRACE_TRACERS_MAX = 16, FTRACE_STATIC_CALLS_MAX = 8 };

/** Zero-initialise before use. */
struct ftrace_table {
	struct ftrace_site *items; /* by ip */
	size_t count, room;
	uint64_t from, to; /* of what trampolines are made of, [from, to) */
	struct ftrace_tracer tracers[FTRACE_TRACERS_MAX]; /* the likeliest first */
	unsigned tracer_count;
	/* calls that lead elsewhere while the graph is traced, as then (kernel/trace/fgraph.c) */
	struct patched_insn static_calls[FTRACE_STATIC_CALLS_MAX];
	unsigned static_call_count;
};

/** A tracer is switched on or off. */
struct ftrace_change {
	const struct ftrace_table *table; /* NULL: no change */
	uint64_t site;   /* of the only function; 0: of all that are in the copy as this one: */
	uint64_t copied; /* as in struct ftrace_site */
	struct ftrace_tracer tracer; /* caller 0: there are NOPs */
	bool is_as_copied;           /* all is as in the copy, again */
};

/**
 * Find the sites in a kernel's code and that of its modules; the machine's jump labels, which are
 * none, have been read.
 *
 * @ret  release with ftrace_table_free(), also after a failure
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int ftrace_table_read(struct machine *machine, struct ftrace_table *ret);

/** What is at `ip`, or NULL. */
const struct ftrace_site *ftrace_table_find(const struct ftrace_table *table, uint64_t ip);

/** Whether an instruction is a site as it is in the copy. */
bool ftrace_table_has(const struct ftrace_table *table, const struct insn *insn);

/** What a tracer of the graph makes of the static call at `ip`; NULL: there is none. */
const struct patched_insn *ftrace_table_static_call(const struct ftrace_table *table, uint64_t ip);

/** Whether code at `ip` may stand for a trampoline. */
static inline bool ftrace_table_has_caller(const struct ftrace_table *table, uint64_t ip)
{
	return ip >= table->from && ip < table->to;
}

/** The change of all that are as a site in the copy, by which they are as it is now. False: it is
 * no site, or neither a NOP nor a call now. */
bool ftrace_change_make(struct ftrace_change *change, const struct ftrace_table *table,
			const struct insn *copied, const struct insn *now);

/** Whether a change is about the instruction at `ip`. */
bool ftrace_change_has(const struct ftrace_change *change, uint64_t ip);

/** What a change makes of an instruction that it is about. False: it is as copied. */
bool ftrace_change_insn(const struct ftrace_change *change, uint64_t ip, struct patched_insn *ret);

/** Whether two changes do the same. */
bool ftrace_change_is_same(const struct ftrace_change *a, const struct ftrace_change *b);

/** Free the sites; accepts zeroes. */
void ftrace_table_free(struct ftrace_table *table);
