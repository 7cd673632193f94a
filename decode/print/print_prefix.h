/* What lines of a printer begin with: thread, CPU, side, time. */
#pragma once

#include "decode/print/printer.h"

/** Thread or context may have changed: all of the prefix is made anew before the next line. */
static inline void prefix_outdate(struct printer *printer)
{
	printer->prefix.is_stale = printer->prefix.is_place_stale = true;
}

/** Bring the prefix and the thread up to date with time and context. If the time has changed, the
 * run of lines with the former one ends. */
void prefix_refresh(struct printer *printer);

/** The lines so far are complete: end the last run. */
void prefix_end_run(struct printer *printer);

/** Whose line it is. */
struct prefix_owner {
	int32_t pid, tid;
	uint64_t time_ns;
	uint64_t vmcs;
	bool in_guest;
	const char *comm; /* NULL: unknown */
};

/** The vCPU that the thread runs, by the recording's ids or by the name that QEMU gives its
 * threads; -1 none. */
int64_t prefix_vcpu(const struct print_config *config, const struct prefix_owner *owner);

/** Whether the options want this thread and side; times and CPUs are another matter. */
bool prefix_is_wanted(const struct print_config *config, const struct prefix_owner *owner);

/** Append those of machine_pid and vcpu that `fields` has, where it is a guest's line. */
void prefix_add_machine(struct text *text, uint32_t fields, const struct print_config *config,
			const struct prefix_owner *owner);

/** Append the name of a thread, right-aligned; `comm` NULL: unknown. */
void prefix_add_comm(struct text *text, const char *comm, int32_t tid, unsigned width);

/** Append those of comm, pid and tid that `fields` has; `comm` NULL: unknown. */
void prefix_add_thread(struct text *text, uint32_t fields, const char *comm, int32_t pid,
		       int32_t tid);

/** Append a CPU, -1 none. */
void prefix_add_cpu(struct text *text, int32_t cpu);

/** Append those of cpu, vmcs and nr that `fields` has. */
void prefix_add_place(struct text *text, uint32_t fields, int32_t cpu,
		      const struct prefix_owner *owner);

/** Append the time, or what stands for it until lines are merged. */
void prefix_add_time(struct text *text, const struct print_config *config, uint64_t time_ns);

/**
 * The kernel is in __switch_to, or begins to trace a thread: if a switch is under way, the next
 * thread has the CPU from here on.
 */
void prefix_switch(struct printer *printer);
