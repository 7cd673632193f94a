/* The records that a recording begins with: what was so before the trace began, which the kernel
 * does not tell then. They are in the order of perf record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "decode/pt/time_conv.h"
#include "host/machine/pt_pmu.h"
#include "host/machine/roots.h"
#include "host/record/recording_out.h"

/** What an id stands for. */
struct start_id {
	uint64_t id, queue;
	int32_t cpu, tid;  /* -1: any */
	pid_t machine_pid; /* of the guest that the id belongs to; 0: the host */
	int32_t vcpu;      /* -1: none */
};

struct guest_modules;

/** A guest whose kernel was copied. */
struct start_guest {
	pid_t pid;                           /* of the process that runs it */
	const char *directory;               /* has its kallsyms and modules */
	const struct guest_modules *modules; /* their files; NULL: not known */
};

struct recording_start {
	struct time_conv conv;
	uint64_t time_cycles, time_mask;
	bool is_time_short;
	const struct start_id *ids;
	size_t id_count;
	const struct pt_pmu *pmu;
	bool is_snapshot, is_per_thread;
	const char *filter; /* of addresses; NULL: none */
	const pid_t *pids;  /* processes that are recorded */
	size_t pid_count;
	const struct start_guest *guests;
	size_t guest_count;
};

/**
 * Write the records: how time is kept, ids, how the trace was made, where the kernel and its
 * modules are, in the host and in each guest, the processes with their threads and maps.
 *
 * What /proc does not show is left out: the host's kernel where kallsyms have no addresses, a
 * process that ended; and so is what a guest's files do not tell.
 *
 * Returns 0, -PTVM_NO_MEMORY or -PTVM_SYSTEM.
 */
int recording_start_write(const struct roots *roots, const struct recording_start *start,
			  struct recording_out *out, struct ptvm_error *error);

/** Write of one more id, while recording. Returns as recording_start_write(). */
int recording_start_id(const struct start_id *id, struct recording_out *out,
		       struct ptvm_error *error);

/** Write the name of one more thread of process `pid`. Returns as recording_start_write(). */
int recording_start_thread(const struct roots *roots, pid_t pid, pid_t tid,
			   struct recording_out *out, struct ptvm_error *error);
