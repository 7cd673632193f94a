/* The events of one recording, on every CPU that its threads can run on, each CPU with one ring.
 * The trace follows threads from CPU to CPU; what else is told is of whole CPUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/aux_ring.h"
#include "host/perf_open.h"

struct recording_out;

/** An event that is open, as the index of ids wants it. */
struct tracer_event {
	enum perf_kind kind;
	uint64_t id;
	size_t queue; /* number of the ring */
	int fd, cpu;
	pid_t tid; /* -1: any */
};

struct tracer_choice {
	struct perf_choice perf;
	const pid_t *tids;
	size_t tid_count;
	const int *cpus;
	size_t cpu_count;
	uint64_t record_pages, aux_pages; /* of each ring */
	bool is_snapshot;
};

/** A CPU: its ring, and the events that write to it, of which the first owns it. */
struct tracer_ring {
	struct aux_ring aux;
	uint64_t written;  /* bytes of trace taken from it */
	size_t first, end; /* in the tracer's events */
};

/** Zero-initialise before use. */
struct tracer {
	const struct perf_kernel *kernel;
	struct tracer_ring *rings;
	size_t ring_count;
	struct {
		struct tracer_event *items; /* ring by ring */
		size_t count, room;
	} events;
};

/**
 * Open all events and map their rings; the trace is not on yet. Threads that have ended are left
 * out. Returns 0, -PTVM_NOT_FOUND where no thread is left, or as perf_open() and aux_ring_map(). In
 * any case tracer_close() it.
 */
int tracer_open(struct tracer *tracer, const struct perf_kernel *kernel,
		const struct tracer_choice *choice, struct ptvm_error *error);

/** Switch the trace on or off, of all threads. Returns 0 or -PTVM_SYSTEM. */
int tracer_switch(const struct tracer *tracer, bool on, struct ptvm_error *error);

/**
 * Write what is in the rings, and let the kernel go on. A trace that stopped for want of room is
 * switched on again.
 *
 * @ret_bytes  how many bytes were written: 0, nothing happened
 *
 * Returns 0, -PTVM_INCONSISTENT, or as recording_out_records(); what was not written stays in the
 * ring.
 */
int tracer_drain(struct tracer *tracer, struct recording_out *out, uint64_t *ret_bytes,
		 struct ptvm_error *error);

/** Close all of it; accepts zeroes. */
void tracer_close(struct tracer *tracer);
