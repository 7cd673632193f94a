/* What is traced: virtual machines, threads, CPUs, as the user named them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/cpu_list.h"
#include "host/machine/pid_list.h"
#include "host/machine/roots.h"
#include "host/record/trace_machine.h"

struct record_options;

/** Zero-initialise before use. */
struct record_targets {
	struct {
		struct trace_machine *items;
		size_t count, room;
	} machines;
	struct pid_list tids; /* those of the machines first; a single -1: whatever runs */
	struct cpu_list cpus;
	struct cpu_list other_cpus; /* online, but not to trace on */
	struct cpu_list late_cpus;  /* to trace on, but they were not online then */
	struct cpu_list gone_cpus;  /* of `cpus`, offline when last looked at */
};

/**
 * Find them.
 * Returns 0, -PTVM_NOT_FOUND, -PTVM_BAD_INPUT (a process that runs no machine), -PTVM_INCONSISTENT
 * or -PTVM_NO_MEMORY; record_targets_free() in any case.
 */
int record_targets_find(const struct roots *roots, const struct record_options *options,
			struct record_targets *ret, struct ptvm_error *error);

/** A vCPU that was plugged in meanwhile, or taken away. */
struct record_vcpu {
	const struct trace_machine *machine;
	struct vcpu_thread vcpu;
};

/**
 * Look for a vCPU thread that is new, and take it in.
 * Returns 1 with one of them in `ret`, 0 where there is none, or -PTVM_NO_MEMORY.
 */
int record_targets_refresh(const struct roots *roots, const struct record_options *options,
			   struct record_targets *targets, struct record_vcpu *ret);

/**
 * Look for a vCPU whose thread has ended since the last look.
 * Returns 1 with one of them in `ret`, or 0.
 */
int record_targets_gone(const struct roots *roots, struct record_targets *targets,
			struct record_vcpu *ret);

/**
 * Look for a CPU to trace on that came online only after record_targets_find().
 * Returns its number, once for each, or -1 where there is none.
 */
int record_targets_late_cpu(const struct roots *roots, const struct record_options *options,
			    struct record_targets *targets);

/**
 * Look for a CPU that is traced on and has been offline: the kernel keeps the events of threads
 * there, but those of the CPU itself have ended (Linux 6.1, perf_event_exit_cpu()).
 * Returns its number, once for each time, or -1 where there is none.
 */
int record_targets_back_cpu(const struct roots *roots, struct record_targets *targets);

/** Which vCPU does a thread run? False where it is none of a traced machine. */
bool record_targets_vcpu(const struct record_targets *targets, pid_t tid, struct record_vcpu *ret);

/** Accepts zeroes. */
void record_targets_free(struct record_targets *targets);
