/* The events of one recording and the rings that they write to.
 *
 * Usually there is a ring for each CPU, and the trace follows threads from CPU to CPU. In
 * per-thread mode there is one for each thread, and others, without trace, for what is told of
 * whole CPUs. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/pid_list.h"
#include "host/record/aux_ring.h"
#include "host/record/perf_open.h"

struct recording_out;
struct trace_loss;

/** An event that is open, as the index of ids wants it. */
struct tracer_event {
	enum perf_kind kind;
	size_t tracepoint; /* which one, of PERF_TRACEPOINT */
	uint64_t id;
	int fd, cpu; /* -1: any */
	pid_t tid;   /* -1: any */
};

/** What to trace. All that it points to is borrowed until tracer_close(). */
struct tracer_choice {
	struct perf_choice perf;
	const struct pid_list *tids; /* a single -1: whatever runs on the CPUs */
	const int *cpus;
	size_t cpu_count;
	const int *other_cpus; /* where nothing is traced, but what happens may matter elsewhere */
	size_t other_count;
	const uint64_t *tracepoints; /* tracepoints that threads pass, by the numbers of tracefs */
	size_t tracepoint_count;
	size_t sample_tracepoint;         /* that whose samples carry trace, where any do */
	const char *filter;               /* of addresses, in the kernel's words; NULL: none */
	uint64_t record_pages, aux_pages; /* of each ring */
	bool is_overwrite; /* rings keep the newest trace, for snapshots or samples */
	bool is_per_thread;
};

/** A ring, and the events that write to it, of which the first owns it. */
struct tracer_ring {
	struct aux_ring aux;
	uint64_t written; /* bytes of trace taken from it */
	bool is_drained;  /* bytes were taken, and the trace was resumed once since */
	int cpu;          /* -1: that of a thread */
	pid_t tid;        /* -1: that of a CPU */
	struct {
		struct tracer_event *items;
		size_t count, room;
	} events;
};

/** Zero-initialise before use. */
struct tracer {
	const struct perf_kernel *kernel;
	const struct tracer_choice *choice;
	pthread_mutex_t lock; /* of `is_on`, and what it says of the events */
	bool is_on;
	struct {
		struct tracer_ring *items;
		size_t count, room;
	} rings; /* the number of a ring is that of its queue in the recording */
};

/** Describe an event; `tracepoint` is the number of a tracepoint among the choice's. */
void tracer_attr_make(const struct tracer_choice *choice, enum perf_kind kind, size_t tracepoint,
		      struct perf_event_attr *ret);

/**
 * Open all events and map their rings; the trace is not on yet. Threads that have ended are left
 * out. Returns 0, -PTVM_NOT_FOUND where no thread is left, or as perf_open() and aux_ring_map(). In
 * any case tracer_close() it.
 */
int tracer_open(struct tracer *tracer, const struct perf_kernel *kernel,
		const struct tracer_choice *choice, struct ptvm_error *error);

/**
 * Trace one more thread, at once if the others are. Not while another thread drains.
 * Returns 0, also where it has ended meanwhile, or as tracer_open(): nothing of it is open then,
 * and the others go on.
 */
int tracer_add_thread(struct tracer *tracer, pid_t tid, struct ptvm_error *error);

/** Switch the trace on or off, of all threads, also while others drain. Returns 0 or -PTVM_SYSTEM.
 */
int tracer_switch(struct tracer *tracer, bool on, struct ptvm_error *error);

/** A file descriptor that poll() waits for: ring number `queue` fills. */
int tracer_wait_fd(const struct tracer *tracer, size_t queue);

/**
 * Write what is in ring number `queue`, and let the kernel go on. A trace that stopped for want of
 * room is switched on again. Rings may be drained by several threads, one by one thread at a time.
 *
 * @loss       what the kernel says was lost is added here
 * @ret_bytes  how many bytes were written: 0, nothing happened
 *
 * Returns 0, -PTVM_INCONSISTENT, or as recording_out_records(); what was not written stays in the
 * ring.
 */
int tracer_drain(struct tracer *tracer, size_t queue, struct recording_out *out,
		 struct trace_loss *loss, uint64_t *ret_bytes, struct ptvm_error *error);

/**
 * Add records of ring number `queue` that were dropped at the end, when it was drained to there.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int tracer_pending_loss(const struct tracer *tracer, size_t queue, struct trace_loss *loss);

/**
 * Write the newest `size` bytes of trace of each ring of a snapshot recording; the trace is off
 * meanwhile. Others may drain. Returns as tracer_drain().
 */
int tracer_snapshot(struct tracer *tracer, uint64_t size, struct recording_out *out,
		    struct ptvm_error *error);

/** Now, of perf's clock; 0 where this kernel does not say how it comes from the TSC. */
uint64_t tracer_now(const struct tracer *tracer);

/** Close all of it; accepts zeroes. */
void tracer_close(struct tracer *tracer);
