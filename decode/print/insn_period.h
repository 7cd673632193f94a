/* Which of the instructions that ran have a line: every n-th, the first after a time, or all
 * (--itrace=i). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/print/itrace.h"
#include "decode/pt/pt_config.h"

struct insn_period {
	uint64_t insns;       /* every so many; 0: by time */
	uint64_t ticks;       /* of the TSC, a power of two */
	uint64_t since_line;  /* instructions that ran since the last line */
	uint64_t since_time;  /* and since the time last changed */
	uint64_t last_period; /* of time, in which the last line was due */
	bool is_begun;        /* tracing was on since the last multiple of it */
};

/** Begin with no line yet. */
void insn_period_init(struct insn_period *period, const struct itrace *itrace,
		      const struct pt_config *config);

/** An instruction ran, at `tsc`. Returns 0; or, where a line of it is due, how many ran since the
 * last line. */
uint64_t insn_period_count(struct insn_period *period, uint64_t tsc);

/** `count` instructions are going to run: pass over the first of them, of which surely none is due.
 * Returns how many these are. */
unsigned insn_period_pass(struct insn_period *period, uint64_t tsc, unsigned count);

/** The time has changed. */
static inline void insn_period_new_time(struct insn_period *period)
{
	period->since_time = 0;
}

/** Tracing is off: of a period that begins meanwhile only the end is due, and that only if
 * instructions reach it, not the next time. */
static inline void insn_period_stop(struct insn_period *period)
{
	period->is_begun = false;
}
