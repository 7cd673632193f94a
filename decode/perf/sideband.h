/* Who ran where and when: threads on CPUs and their names, from the records of a recording. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/perf/perf_data.h"

/** This thread gets the CPU: not before `time`, when its predecessor was switched out, and not
 * after `settled`, when it was itself switched in. In between lies the kernel's __switch_to. */
struct switch_entry {
	uint64_t time;    /* ns of perf's clock */
	uint64_t settled; /* ns; equal to `time` where only one of the two is recorded */
	int32_t pid, tid; /* -1 unknown, 0 idle */
};

struct sideband;

/**
 * Build the tables from sorted records. Returns 0 or -PTVM_NO_MEMORY.
 * `data` must outlive the result; release with sideband_free().
 */
int sideband_build(const struct perf_data *data, struct sideband **ret);

/** Give pages of the tables back as far as they lie in files (spool.h). */
void sideband_rest(const struct sideband *sideband);

/** Accepts NULL. */
void sideband_free(struct sideband *sideband);

/** The switches of one CPU in order of time, possibly none (count 0). From SWITCH_CPU_WIDE in and
 * out, SWITCH, sched:sched_switch samples, ITRACE_START, whichever the recording has. */
const struct switch_entry *sideband_switches(const struct sideband *sideband, int32_t cpu,
					     size_t *count);

/** How many of the switches have settled by `time_ns`; the thread of the last of these has the CPU.
 */
size_t switches_settled(const struct switch_entry *switches, size_t count, uint64_t time_ns);

/** How many of the switches have begun by `time_ns`. Until it has settled, a switch runs the host's
 * kernel alone: guests and user code at such a time are those of the last of these. */
size_t switches_begun(const struct switch_entry *switches, size_t count, uint64_t time_ns);

/** The name of a thread at a time: COMM records, FORK inheritance, THREAD_MAP; NULL unknown
 * (perf prints ":TID"). The idle thread 0 is "swapper". */
const char *sideband_comm(const struct sideband *sideband, int32_t tid, uint64_t time_ns);

/** The same as of a record, by its place among the recording's: several may have one time. */
const char *sideband_comm_by(const struct sideband *sideband, int32_t tid, size_t order);

/** When a thread takes another name after a time, in ns; UINT64_MAX never. */
uint64_t sideband_comm_until(const struct sideband *sideband, int32_t tid, uint64_t time_ns);

/** The process of a thread, -1 unknown. */
int32_t sideband_pid_of(const struct sideband *sideband, int32_t tid);
