/* Threads or processes, by their numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/machine/roots.h"

/** Zero-initialise before use; release with vec_free(). */
struct pid_list {
	pid_t *items;
	size_t count, room;
};

/** Read the number of a process or thread, a positive one, up to what follows it, where `end` is
 * then. Returns whether there is one. */
bool pid_read(const char *text, const char **end, pid_t *ret);

/** Add one, unless it is there. Returns 0 or -PTVM_NO_MEMORY. */
int pid_list_add(struct pid_list *list, pid_t pid);

/**
 * The processes that threads belong to, each once.
 *
 * @tids  one that has ended has none; -1 stands for all
 *
 * Returns 0 or -PTVM_NO_MEMORY; release `ret` in any case.
 */
int pid_list_processes(const struct roots *roots, const struct pid_list *tids,
		       struct pid_list *ret);
