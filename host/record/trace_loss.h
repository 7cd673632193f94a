/* What the kernel could not hand out: trace that stopped for want of room, and dropped records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/record/ring_bytes.h"

/** The losses of one thread. Times are of perf's clock, in ns. */
struct thread_loss {
	pid_t tid;
	uint64_t stops;       /* how often the trace ended for want of room */
	uint64_t partials;    /* pieces with gaps: another user of Intel PT, or VMX root */
	uint64_t bytes;       /* of trace, as far as the kernel counts them */
	uint64_t records;     /* dropped */
	uint64_t ns;          /* without trace, at most: until it was switched on again */
	uint64_t first, last; /* when */
};

/** Zero-initialise before use, one for each ring. */
struct trace_loss {
	struct {
		struct thread_loss *items;
		size_t count, room;
	} threads;
	uint64_t end;        /* of the trace handed out so far, as AUX records count it */
	bool is_untold;      /* one of them is missing: perhaps it told of a stop */
	uint64_t stopped_at; /* since when there is no trace; 0: there is, or it is not known */
	pid_t stopped_tid;
	uint64_t oldest, newest; /* times of records; 0: none yet */
	uint64_t samples;        /* records of that kind */
	uint64_t told;           /* dropped records that LOST records tell of */
};

/**
 * Look through records for losses and times.
 *
 * @bytes  whole records, as the kernel wrote them for the events of perf_open.h
 *
 * Returns 0 or -PTVM_NO_MEMORY: a thread was left out.
 */
int trace_loss_read(struct trace_loss *loss, const struct ring_bytes *bytes);

/** The trace is on at `time`, of perf's clock; 0: not known. */
void trace_loss_resumed(struct trace_loss *loss, uint64_t time);

/**
 * Add records that were dropped at the end, where no LOST record came after them.
 *
 * @counted  what the kernel counts of all events of the ring
 * @tid      of the thread whose event counts most
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int trace_loss_pending(struct trace_loss *loss, uint64_t counted, pid_t tid);

/** Add what a thread lost; `to` keeps its number. */
void thread_loss_add(struct thread_loss *to, const struct thread_loss *from);

/** Add `from` to `to`. Returns 0 or -PTVM_NO_MEMORY. */
int trace_loss_add(struct trace_loss *to, const struct trace_loss *from);

/** Accepts zeroes. */
void trace_loss_free(struct trace_loss *loss);
