#include "host/tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"
#include "host/recording_out.h"

/* The TSC: a time after the bytes of a ring were traced. */
static uint64_t now(void)
{
	return __builtin_ia32_rdtsc();
}

static int open_event(struct tracer *tracer, const struct tracer_choice *choice,
		      enum perf_kind kind, pid_t tid, size_t queue, struct ptvm_error *error)
{
	struct tracer_event event = { kind, 0, queue, -1, choice->cpus[queue], tid };
	struct ptvm_error why = { 0 };
	struct perf_event_attr attr;

	perf_attr_make(kind, &choice->perf, &attr);
	event.fd = perf_open(tracer->kernel, kind, &attr, tid, event.cpu, &why);
	if (event.fd < 0 && why.sys_errno == ESRCH)
		return 0;
	if (event.fd < 0) {
		(void)ptvm_fail(error, PTVM_SYSTEM, "%s", why.message);
		return -PTVM_SYSTEM;
	}
	if (!vec_push(&tracer->events, event)) {
		(void)tracer->kernel->close(tracer->kernel->context, event.fd);
		return -PTVM_NO_MEMORY;
	}
	return perf_id(tracer->kernel, event.fd, &tracer->events.items[tracer->events.count - 1].id,
		       error);
}

static int open_for_threads(struct tracer *tracer, const struct tracer_choice *choice,
			    enum perf_kind kind, size_t queue, struct ptvm_error *error)
{
	int r = 0;

	for (size_t i = 0; i < choice->tid_count && !r; i++)
		r = open_event(tracer, choice, kind, choice->tids[i], queue, error);
	return r;
}

/* All but the owner write to the owner's ring. */
static int share_ring(const struct tracer *tracer, const struct tracer_ring *ring,
		      struct ptvm_error *error)
{
	const struct tracer_event *events = tracer->events.items;
	int r = 0;

	for (size_t i = ring->first + 1; i < ring->end && !r; i++)
		r = perf_redirect(tracer->kernel, events[i].fd, events[ring->first].fd, error);
	return r;
}

/* What is told beside the trace. */
static int open_others(struct tracer *tracer, const struct tracer_choice *choice, size_t queue,
		       struct ptvm_error *error)
{
	int r;

	r = open_event(tracer, choice, PERF_SWITCHES, -1, queue, error);
	if (!r && !choice->perf.no_kernel)
		r = open_event(tracer, choice, PERF_TEXT_POKES, -1, queue, error);
	return r ? r : open_for_threads(tracer, choice, PERF_TASKS, queue, error);
}

/* The trace first: its event owns the ring, and only an owner's trace goes into it. */
static int open_cpu(struct tracer *tracer, const struct tracer_choice *choice, size_t queue,
		    struct ptvm_error *error)
{
	struct tracer_ring *ring = &tracer->rings[queue];
	int r;

	ring->first = tracer->events.count;
	r = open_for_threads(tracer, choice, PERF_TRACE, queue, error);
	if (!r && tracer->events.count == ring->first)
		return ptvm_fail(error, PTVM_NOT_FOUND, "all threads to trace have ended");
	if (!r)
		r = aux_ring_map(&ring->aux, tracer->kernel, tracer->events.items[ring->first].fd,
				 choice->record_pages, choice->aux_pages, choice->is_snapshot,
				 error);
	if (!r)
		r = open_others(tracer, choice, queue, error);
	ring->end = tracer->events.count;
	return r ? r : share_ring(tracer, ring, error);
}

int tracer_open(struct tracer *tracer, const struct perf_kernel *kernel,
		const struct tracer_choice *choice, struct ptvm_error *error)
{
	int r = 0;

	memset(tracer, 0, sizeof(*tracer));
	tracer->kernel = kernel;
	tracer->rings = calloc(choice->cpu_count, sizeof(*tracer->rings));
	if (!tracer->rings)
		return -PTVM_NO_MEMORY;
	tracer->ring_count = choice->cpu_count;
	for (size_t queue = 0; queue < choice->cpu_count && !r; queue++)
		r = open_cpu(tracer, choice, queue, error);
	return r;
}

static int switch_ring(const struct tracer *tracer, const struct tracer_ring *ring, bool on,
		       struct ptvm_error *error)
{
	const struct tracer_event *events = tracer->events.items;
	int r = 0;

	for (size_t i = ring->first; i < ring->end && !r; i++)
		if (events[i].kind == PERF_TRACE)
			r = perf_switch(tracer->kernel, events[i].fd, on, error);
	return r;
}

int tracer_switch(const struct tracer *tracer, bool on, struct ptvm_error *error)
{
	int r = 0;

	for (size_t queue = 0; queue < tracer->ring_count && !r; queue++)
		r = switch_ring(tracer, &tracer->rings[queue], on, error);
	return r;
}

static int inconsistent(size_t queue, struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_INCONSISTENT, "the kernel's place in ring %zu makes no sense",
			 queue);
}

static int drain_records(struct tracer *tracer, size_t queue, struct recording_out *out,
			 uint64_t *bytes, struct ptvm_error *error)
{
	struct aux_ring *ring = &tracer->rings[queue].aux;
	struct ring_bytes ready;
	int r;

	if (aux_ring_records(ring, &ready))
		return inconsistent(queue, error);
	r = recording_out_records(out, &ready, error);
	if (r)
		return r;
	aux_ring_release_records(ring, &ready);
	*bytes += ready.first_size + ready.second_size;
	return 0;
}

static int drain_trace(struct tracer *tracer, size_t queue, struct recording_out *out,
		       uint64_t *bytes, struct ptvm_error *error)
{
	struct tracer_ring *ring = &tracer->rings[queue];
	struct recording_trace trace = { .offset = ring->written,
					 .queue = (uint32_t)queue,
					 .tid = -1,
					 .cpu = tracer->events.items[ring->first].cpu };
	struct ring_bytes ready;
	uint64_t size;
	int r;

	if (aux_ring_trace(&ring->aux, &ready))
		return inconsistent(queue, error);
	size = ready.first_size + ready.second_size;
	if (!size)
		return 0;
	trace.reference = now();
	r = recording_out_trace(out, &trace, &ready, error);
	if (r)
		return r;
	aux_ring_release_trace(&ring->aux, &ready);
	ring->written += size;
	*bytes += size;
	return switch_ring(tracer, ring, true, error);
}

int tracer_drain(struct tracer *tracer, struct recording_out *out, uint64_t *ret_bytes,
		 struct ptvm_error *error)
{
	uint64_t bytes = 0;
	int r = 0;

	for (size_t queue = 0; queue < tracer->ring_count && !r; queue++) {
		r = drain_records(tracer, queue, out, &bytes, error);
		if (!r && !tracer->rings[queue].aux.is_snapshot)
			r = drain_trace(tracer, queue, out, &bytes, error);
	}
	if (!r && bytes)
		r = recording_out_round(out, error);
	*ret_bytes = bytes;
	return r;
}

void tracer_close(struct tracer *tracer)
{
	for (size_t queue = 0; queue < tracer->ring_count; queue++)
		aux_ring_unmap(&tracer->rings[queue].aux);
	for (size_t i = 0; i < tracer->events.count; i++)
		(void)tracer->kernel->close(tracer->kernel->context, tracer->events.items[i].fd);
	vec_free(&tracer->events);
	free(tracer->rings);
	memset(tracer, 0, sizeof(*tracer));
}
