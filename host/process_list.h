/* The processes that threads belong to. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "host/roots.h"

/** Zero-initialise before use. */
struct process_list {
	pid_t *items; /* each once */
	size_t count, room;
};

/**
 * Collect them.
 *
 * @tids  threads; one that has ended has none. -1 stands for all
 *
 * Returns 0 or -PTVM_NO_MEMORY; process_list_free() in any case.
 */
int process_list_make(const struct roots *roots, const pid_t *tids, size_t count,
		      struct process_list *ret);

/** Accepts zeroes. */
void process_list_free(struct process_list *list);
