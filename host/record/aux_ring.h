/* The memory that the kernel and a recorder share for one event: a control page, a ring of records,
 * and the AUX area with the trace. This is the one place that orders memory accesses.
 *
 * A full trace is a ring: the kernel writes at aux_head and stops when it reaches aux_tail, which
 * we move on once bytes are safe. A snapshot ring is written over and over: the kernel stops it
 * when asked to, and aux_head is a place in it, which does not tell whether it ever went around. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/pt/time_conv.h"
#include "host/machine/perf_kernel.h"
#include "host/record/ring_bytes.h"

struct aux_ring {
	const struct perf_kernel *kernel;
	struct perf_event_mmap_page *page;
	const uint8_t *records;
	uint64_t records_size; /* a power of two */
	const uint8_t *aux;    /* NULL: an event without trace */
	uint64_t aux_size;     /* a power of two */
	bool is_snapshot;
	bool is_around; /* of a snapshot: the ring was filled once, so that all of it is trace */
};

/** How perf's clock follows from the TSC, and what else the record TIME_CONV says of it. */
struct ring_clock {
	struct time_conv conv;
	uint64_t cycles, mask;
	bool is_short; /* the counter has less than 64 bits; `cycles` and `mask` extend it */
};

/**
 * Map the buffers of an event.
 *
 * @record_pages  a power of two
 * @aux_pages     a power of two, or 0: no trace
 *
 * Returns 0, -PTVM_BAD_USAGE (sizes), or -PTVM_SYSTEM with what helps. Nothing is left mapped then.
 */
int aux_ring_map(struct aux_ring *ring, const struct perf_kernel *kernel, int fd,
		 uint64_t record_pages, uint64_t aux_pages, bool is_snapshot,
		 struct ptvm_error *error);

/** Accepts zeroes. */
void aux_ring_unmap(struct aux_ring *ring);

/**
 * The records that are ready: whole ones, though the last may be in two pieces; `ret` is empty
 * where there are none. Returns 0, or -PTVM_INCONSISTENT: head and tail contradict each other.
 */
int aux_ring_records(const struct aux_ring *ring, struct ring_bytes *ret);

/** The records are safe: the kernel may write over them. */
void aux_ring_release_records(struct aux_ring *ring, const struct ring_bytes *bytes);

/** The trace that is ready, as aux_ring_records(); not for snapshots. */
int aux_ring_trace(const struct aux_ring *ring, struct ring_bytes *ret);

/**
 * The trace is safe: the kernel may write over it. A trace that had stopped for want of room goes
 * on only when its event is switched on again.
 */
void aux_ring_release_trace(struct aux_ring *ring, const struct ring_bytes *bytes);

/**
 * The newest `size` bytes of a snapshot, or less where there is less. The event must be switched
 * off until they are safe. They may begin with bytes that the snapshot before had, too.
 *
 * Returns 0, or -PTVM_INCONSISTENT. Looks through the buffer until it has gone around once.
 */
int aux_ring_snapshot(struct aux_ring *ring, uint64_t size, struct ring_bytes *ret);

/** Returns 0, or -PTVM_INCONSISTENT where the kernel does not stop changing it. */
int aux_ring_clock(const struct aux_ring *ring, struct ring_clock *ret);
