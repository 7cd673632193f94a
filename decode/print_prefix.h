/* What lines of a printer begin with: thread, CPU, side, time. */
#pragma once

#include "decode/printer.h"

/**
 * Bring printer->prefix, the thread and printer->wanted up to date with its time and context, and
 * end the run of lines with the former time.
 */
void prefix_refresh(struct printer *printer);

/** The lines so far are complete: end the last run. */
void prefix_end_run(struct printer *printer);

/** Append those of comm, pid and tid that `fields` has; `comm` NULL: unknown. */
void prefix_add_thread(struct text *text, uint32_t fields, const char *comm, int32_t pid,
		       int32_t tid);

/** Append a CPU, -1 none. */
void prefix_add_cpu(struct text *text, int32_t cpu);

/**
 * The kernel is in __switch_to, or begins to trace a thread: if a switch is under way, the next
 * thread has the CPU from here on.
 */
void prefix_switch(struct printer *printer);
