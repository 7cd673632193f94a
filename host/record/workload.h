/* The command that is run while recording; the recording ends with it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "decode/base/error.h"

/** Zero-initialise before use. */
struct workload {
	pid_t pid;       /* 0: none */
	int start;       /* a pipe that it waits at */
	int exec_failed; /* a pipe that tells why it did not start */
};

/**
 * Make the process; it waits.
 *
 * @argv    the command and its arguments, and NULL; found as a shell does
 *
 * Returns 0 or -PTVM_SYSTEM. workload_end() it.
 */
int workload_prepare(struct workload *workload, char *const *argv, struct ptvm_error *error);

/** Let it run. Returns 0, or -PTVM_NOT_FOUND where there is no such command. */
int workload_start(struct workload *workload, const char *name, struct ptvm_error *error);

/** Has it ended? `ret` is its exit status then, as a shell has it. */
bool workload_has_ended(struct workload *workload, int *ret);

/** A command that still runs is told to (SIGTERM). Accepts zeroes. */
void workload_end(struct workload *workload);
