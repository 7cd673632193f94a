/* The events that make a recording: the trace itself, and beside it what a decoder must know to
 * follow it: who ran where, what was mapped, which code the kernel changed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/perf_kernel.h"

enum perf_kind {
	PERF_TRACE,      /* intel_pt; the first on its CPU, since it owns the buffer */
	PERF_SWITCHES,   /* which thread is on the CPU; on all CPUs */
	PERF_TEXT_POKES, /* the kernel patching itself, and its symbols; on all CPUs */
	PERF_TASKS,      /* maps, names, threads that come and go */
	PERF_TRACEPOINT, /* a tracepoint */
	PERF_SAMPLES,    /* a clock that goes while a thread runs: each tick carries trace */
};

/** What the user chose, and what the machine allows. */
struct perf_choice {
	uint32_t pt_type;       /* of the PMU */
	uint64_t pt_config;     /* options of the trace, as bits */
	uint32_t aux_watermark; /* bytes after which the trace is handed out; 0: half of the ring */
	bool no_user, no_kernel;
	bool inherit;  /* threads that are made later are traced, too; not in per-thread mode */
	bool has_lost; /* from perf_lost_is_known() */
	uint64_t tracepoint;      /* number of the tracepoint, of PERF_TRACEPOINT */
	uint32_t aux_sample_size; /* bytes of trace in each sample of a POINT or SAMPLES; 0: none */
};

enum { PERF_ATTR_SIZE = 128 }; /* on disk: perf before 6.3 reads no larger one */

/** What an event belongs to. */
struct perf_place {
	pid_t tid;    /* -1: whatever runs on `cpu` */
	int cpu;      /* -1: any */
	int group_fd; /* the trace that its samples carry; -1: none */
};

/** Describe an event to the kernel. */
void perf_attr_make(enum perf_kind kind, const struct perf_choice *choice,
		    struct perf_event_attr *ret);

/** Does the kernel count what an event lost (read_format LOST, Linux 6.0)? */
bool perf_lost_is_known(const struct perf_kernel *kernel);

/**
 * Open an event.
 *
 * Returns its file descriptor, or -PTVM_SYSTEM: the message is one line that says why, and what
 * helps.
 */
int perf_open(const struct perf_kernel *kernel, enum perf_kind kind,
	      const struct perf_event_attr *attr, const struct perf_place *place,
	      struct ptvm_error *error);

/**
 * Let an event write into the buffer of another on the same CPU.
 * Returns 0 or -PTVM_SYSTEM.
 */
int perf_redirect(const struct perf_kernel *kernel, int fd, int owner_fd, struct ptvm_error *error);

/**
 * Trace only some addresses.
 *
 * @filter  "filter 0xADDRESS/0xSIZE", or several with commas between them
 *
 * Returns 0 or -PTVM_SYSTEM.
 */
int perf_filter(const struct perf_kernel *kernel, int fd, const char *filter,
		struct ptvm_error *error);

/**
 * Switch an event on or off. On a trace that stopped because its buffer was full, on starts it
 * again. Returns 0 or -PTVM_SYSTEM.
 */
int perf_switch(const struct perf_kernel *kernel, int fd, bool on, struct ptvm_error *error);

/** The number that records name the event by. Returns 0 or -PTVM_SYSTEM. */
int perf_id(const struct perf_kernel *kernel, int fd, uint64_t *ret, struct ptvm_error *error);

/** How many records of the event found no room since it was opened; 0 where the kernel does not
 * count them. */
uint64_t perf_lost(const struct perf_kernel *kernel, int fd);
