/* Sends standard output through a pager, under the same conditions as git. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "decode/base/error.h"

/** Zero-initialise before use. */
struct pager {
	pid_t pid; /* 0 or less: none runs */
};

/**
 * Send standard output through a pager where it is a terminal: $PTVM_PAGER, else $PAGER, else
 * `less`, which gets LESS=FRX unless LESS is set. None runs where that is empty or `cat`, or
 * cannot be run. Call before anything is printed.
 *
 * Returns 0, or -PTVM_SYSTEM.
 */
int pager_start(struct pager *pager, struct ptvm_error *error);

/** Close standard output, where a pager runs, and wait until the user leaves it; accepts zeroes. */
void pager_wait(struct pager *pager);
