/* What `ptvm script` makes of a trace, and the option --itrace that says it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/print/sample_origin.h"

/** Kinds of events to make of a trace, as perf's --itrace names them. */
struct itrace {
	/* branches are all branches, unless calls or returns are set: then only these */
	bool instructions, branches, calls, returns, errors, transactions, ptwrites, power,
		interrupts;
	bool approximate_ipc; /* A */
	bool timeless;        /* Z: take no time from the trace */
	bool pebs;            /* o: PEBS records in the trace, of which nothing is made yet */
	unsigned quick;       /* number of q */
	enum { PERIOD_INSNS, PERIOD_TICKS, PERIOD_NS } period_unit;
	uint64_t period;              /* 0 with PERIOD_NS: every instruction; 0 of no other unit */
	uint64_t skip;                /* s: events not to print at first */
	unsigned chain;               /* g: entries of call chains at most; 0: none */
	unsigned last_branches;       /* l: entries at most; 0: none */
	struct origin_limits samples; /* G, L: the same for samples of other events */
	bool error_overflow, error_lost; /* print these errors too; false with e-o and e-l */
};

/** perf script's default, cxwpIe, for no --itrace or one without letters. */
void itrace_default(struct itrace *ret);

/**
 * Parse the argument of --itrace: letters with their numbers and flags (i100us, e-o-l, qq); the
 * default where there are none. Letters of other hardware than Intel PT (f, m, M, t, a) and perf's
 * debug log (d) are accepted and mean nothing.
 *
 * @itrace  in: what former arguments asked for, or zeroes; out: that and this. Only the period is
 *          that of the last. Unchanged after a failure
 *
 * Returns 0, or -PTVM_BAD_USAGE.
 */
int itrace_add(const char *text, struct itrace *itrace, struct ptvm_error *error);
