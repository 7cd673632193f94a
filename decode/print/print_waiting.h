/* The branch that waits (struct waiting_branch): what comes next decides what its lines are.
 * Internal to the printer. */
#pragma once

#include "decode/print/printer.h"

/** This branch waits from now on. */
static inline void print_waiting_keep(struct printer *printer, struct waiting_branch branch)
{
	printer->waiting = branch;
	printer->branch_context = printer->context;
}

/** The branch that waits, if any, goes to `ip`, or if that is 0 to where nobody knows. Its lines
 * have `more_flags` (enum sample_flag) besides those of its instruction. */
void print_waiting_finish(struct printer *printer, uint64_t ip, uint32_t more_flags);

/** There is a branch that waits: it went to where its instruction says. */
void print_waiting_end(struct printer *printer);

/** The same, if a branch waits. */
static inline void print_waiting_settle(struct printer *printer)
{
	if (printer->waiting.block)
		print_waiting_end(printer);
}
