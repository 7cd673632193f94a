/* The last instruction that ran, if it is a branch: its lines wait for what comes next, its target,
 * or that tracing ends with it. Internal to the printer. */
#pragma once

#include "decode/printer.h"

/** Instruction `index` of a block is the branch that waits from now on. */
void print_waiting_keep(struct printer *printer, struct block *block, unsigned index);

/** The branch that waits, if any, goes to `ip`; 0: nobody knows. It has more of enum sample_flag
 * than its instruction tells. */
void print_waiting_finish(struct printer *printer, uint64_t ip, uint32_t more_flags);

/** There is one that waits: it was an ordinary one, to where its instruction says. */
void print_waiting_end(struct printer *printer);

/** The same, if any waits. */
static inline void print_waiting_settle(struct printer *printer)
{
	if (printer->branch_block)
		print_waiting_end(printer);
}
