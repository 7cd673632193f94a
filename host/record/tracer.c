#include "host/record/tracer.h"

#include <errno.h>
#include <string.h>

#include "decode/base/vec.h"
#include "host/record/recording_out.h"
#include "host/record/trace_loss.h"

enum { ANY = -1 };

/* The TSC: a time after the bytes of a ring were traced. Other CPUs have no trace to date. */
static uint64_t now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* Where an event belongs. */
struct place {
	pid_t tid;
	int cpu;
	size_t tracepoint;
};

static int set_up_event(const struct tracer *tracer, struct tracer_event *event,
			struct ptvm_error *error)
{
	const char *filter = tracer->choice->filter;
	int r = perf_id(tracer->kernel, event->fd, &event->id, error);

	if (!r && filter && event->kind == PERF_TRACE)
		r = perf_filter(tracer->kernel, event->fd, filter, error);
	return r;
}

void tracer_attr_make(const struct tracer_choice *choice, enum perf_kind kind, size_t tracepoint,
		      struct perf_event_attr *ret)
{
	struct perf_choice perf = choice->perf;

	if (kind == PERF_TRACEPOINT)
		perf.tracepoint = choice->tracepoints[tracepoint];
	if (kind == PERF_TRACEPOINT && tracepoint != choice->sample_tracepoint)
		perf.aux_sample_size = 0;
	perf_attr_make(kind, &perf, ret);
}

/* The trace of a thread in a ring. */
static int trace_fd(const struct tracer_ring *ring, pid_t tid)
{
	for (size_t i = 0; i < ring->events.count; i++)
		if (ring->events.items[i].kind == PERF_TRACE && ring->events.items[i].tid == tid)
			return ring->events.items[i].fd;
	return ANY;
}

/* For the first event of a ring, which owns it from then on. Only an owner's trace goes into it. */
static int map_ring(struct tracer *tracer, struct tracer_ring *ring, struct ptvm_error *error)
{
	const struct tracer_event *owner = &ring->events.items[0];
	const bool is_traced = owner->kind == PERF_TRACE;

	return aux_ring_map(&ring->aux, tracer->kernel, owner->fd, tracer->choice->record_pages,
			    is_traced ? tracer->choice->aux_pages : 0, tracer->choice->is_overwrite,
			    error);
}

/* A thread that has ended is no error. All but the owner write to the owner's ring. */
static int open_event(struct tracer *tracer, struct tracer_ring *ring, enum perf_kind kind,
		      struct place place, struct ptvm_error *error)
{
	struct tracer_event event = { kind, place.tracepoint, 0, ANY, place.cpu, place.tid };
	struct perf_place at = { place.tid, place.cpu, ANY };
	struct ptvm_error why = { 0 };
	struct perf_event_attr attr;
	int r;

	tracer_attr_make(tracer->choice, kind, place.tracepoint, &attr);
	if (attr.aux_sample_size)
		at.group_fd = trace_fd(ring, place.tid);
	event.fd = perf_open(tracer->kernel, kind, &attr, &at, &why);
	if (event.fd < 0 && why.sys_errno == ESRCH)
		return 0;
	if (event.fd < 0)
		return ptvm_fail_as(error, &why, event.fd);
	if (!vec_push(&ring->events, event)) {
		(void)tracer->kernel->close(tracer->kernel->context, event.fd);
		return -PTVM_NO_MEMORY;
	}
	r = set_up_event(tracer, &ring->events.items[ring->events.count - 1], error);
	if (r)
		return r;
	return ring->aux.page
		       ? perf_redirect(tracer->kernel, event.fd, ring->events.items[0].fd, error)
		       : map_ring(tracer, ring, error);
}

static struct tracer_ring *add_ring(struct tracer *tracer, pid_t tid, int cpu)
{
	if (!vec_push(&tracer->rings, (struct tracer_ring){ .tid = tid, .cpu = cpu }))
		return NULL;
	return &tracer->rings.items[tracer->rings.count - 1];
}

/* `tid` ANY: of the whole CPU. */
static int open_of(struct tracer *tracer, struct tracer_ring *ring, enum perf_kind kind, pid_t tid,
		   struct ptvm_error *error)
{
	return open_event(tracer, ring, kind, (struct place){ tid, ring->cpu, 0 }, error);
}

/* What is told of a thread beside its trace. */
static int open_beside(struct tracer *tracer, struct tracer_ring *ring, pid_t tid,
		       struct ptvm_error *error)
{
	struct place place = { tid, ring->cpu, 0 };
	int r = open_event(tracer, ring, PERF_TASKS, place, error);

	if (!r && tracer->choice->perf.aux_sample_size && !tracer->choice->tracepoint_count)
		r = open_event(tracer, ring, PERF_SAMPLES, place, error);
	for (; place.tracepoint < tracer->choice->tracepoint_count && !r; place.tracepoint++)
		r = open_event(tracer, ring, PERF_TRACEPOINT, place, error);
	return r;
}

/* The traces first, since one of them has to own the ring. */
static int open_cpu(struct tracer *tracer, int cpu, struct ptvm_error *error)
{
	const struct tracer_choice *choice = tracer->choice;
	struct tracer_ring *ring = add_ring(tracer, ANY, cpu);
	int r = ring ? 0 : -PTVM_NO_MEMORY;

	for (size_t i = 0; i < choice->tids->count && !r; i++)
		r = open_of(tracer, ring, PERF_TRACE, choice->tids->items[i], error);
	if (!r && !ring->events.count)
		return ptvm_fail(error, PTVM_NOT_FOUND, "all threads to trace have ended");
	if (!r)
		r = open_of(tracer, ring, PERF_SWITCHES, ANY, error);
	if (!r && !choice->perf.no_kernel)
		r = open_of(tracer, ring, PERF_TEXT_POKES, ANY, error);
	for (size_t i = 0; i < choice->tids->count && !r; i++)
		r = open_beside(tracer, ring, choice->tids->items[i], error);
	return r;
}

static int open_thread(struct tracer *tracer, pid_t tid, struct ptvm_error *error)
{
	struct tracer_ring *ring = add_ring(tracer, tid, ANY);
	int r = ring ? open_of(tracer, ring, PERF_TRACE, tid, error) : -PTVM_NO_MEMORY;

	if (!r && !ring->events.count)
		tracer->rings.count--; /* it has ended */
	else if (!r)
		r = open_beside(tracer, ring, tid, error);
	return r;
}

/* A ring without trace, for what is told of a whole CPU: the kernel changing itself. */
static int open_pokes(struct tracer *tracer, int cpu, struct ptvm_error *error)
{
	struct tracer_ring *ring = add_ring(tracer, ANY, cpu);

	return ring ? open_of(tracer, ring, PERF_TEXT_POKES, ANY, error) : -PTVM_NO_MEMORY;
}

static int open_per_thread(struct tracer *tracer, struct ptvm_error *error)
{
	const struct tracer_choice *choice = tracer->choice;
	int r = 0;

	for (size_t i = 0; i < choice->tids->count && !r; i++)
		r = open_thread(tracer, choice->tids->items[i], error);
	if (!r && !tracer->rings.count)
		return ptvm_fail(error, PTVM_NOT_FOUND, "all threads to trace have ended");
	for (size_t i = 0; i < choice->cpu_count && !r && !choice->perf.no_kernel; i++)
		r = open_pokes(tracer, choice->cpus[i], error);
	return r;
}

/* Where nothing is traced the kernel may change itself, and threads may map what they run later
 * where they are traced. */
static int open_other(struct tracer *tracer, int cpu, struct ptvm_error *error)
{
	const struct tracer_choice *choice = tracer->choice;
	struct tracer_ring *ring = add_ring(tracer, ANY, cpu);
	int r = ring ? 0 : -PTVM_NO_MEMORY;

	if (!r && !choice->perf.no_kernel)
		r = open_of(tracer, ring, PERF_TEXT_POKES, ANY, error);
	for (size_t i = 0; i < choice->tids->count && !r && !choice->perf.no_user; i++)
		r = open_of(tracer, ring, PERF_TASKS, choice->tids->items[i], error);
	if (!r && !ring->events.count)
		tracer->rings.count--; /* all threads have ended */
	return r;
}

int tracer_open(struct tracer *tracer, const struct perf_kernel *kernel,
		const struct tracer_choice *choice, struct ptvm_error *error)
{
	int r = 0;

	memset(tracer, 0, sizeof(*tracer));
	tracer->kernel = kernel;
	tracer->choice = choice;
	(void)pthread_mutex_init(&tracer->lock, NULL);
	if (choice->is_per_thread)
		return open_per_thread(tracer, error);
	for (size_t i = 0; i < choice->cpu_count && !r; i++)
		r = open_cpu(tracer, choice->cpus[i], error);
	for (size_t i = 0; i < choice->other_count && !r; i++)
		r = open_other(tracer, choice->other_cpus[i], error);
	return r;
}

static bool is_switched(const struct tracer_event *event)
{
	return event->kind == PERF_TRACE || event->kind == PERF_TRACEPOINT ||
	       event->kind == PERF_SAMPLES;
}

/* `tid` ANY: those of all threads. */
static int switch_ring(const struct tracer *tracer, const struct tracer_ring *ring, pid_t tid,
		       bool on, struct ptvm_error *error)
{
	int r = 0;

	for (size_t i = 0; i < ring->events.count && !r; i++)
		if (is_switched(&ring->events.items[i]) &&
		    (tid == ANY || ring->events.items[i].tid == tid))
			r = perf_switch(tracer->kernel, ring->events.items[i].fd, on, error);
	return r;
}

static int switch_thread(const struct tracer *tracer, pid_t tid, bool on, struct ptvm_error *error)
{
	int r = 0;

	for (size_t queue = 0; queue < tracer->rings.count && !r; queue++)
		r = switch_ring(tracer, &tracer->rings.items[queue], tid, on, error);
	return r;
}

int tracer_switch(struct tracer *tracer, bool on, struct ptvm_error *error)
{
	int r;

	(void)pthread_mutex_lock(&tracer->lock);
	tracer->is_on = on;
	r = switch_thread(tracer, ANY, on, error);
	(void)pthread_mutex_unlock(&tracer->lock);
	return r;
}

/* To switch on what counts as on has no effect, and Linux 6.1 to 6.16 (ca6c21327c6a, 2b84def990d3)
 * let a trace that stopped for want of room count as on: on CPU 0, since 6.11 on all. */
static int switch_off_traces(const struct tracer *tracer, const struct tracer_ring *ring,
			     struct ptvm_error *error)
{
	int r = 0;

	for (size_t i = 0; i < ring->events.count && !r; i++)
		if (ring->events.items[i].kind == PERF_TRACE)
			r = perf_switch(tracer->kernel, ring->events.items[i].fd, false, error);
	return r;
}

/* A trace that stopped for want of room goes on, unless it was switched off meanwhile. */
static int resume(struct tracer *tracer, const struct tracer_ring *ring, bool is_stopped,
		  struct ptvm_error *error)
{
	int r = 0;

	(void)pthread_mutex_lock(&tracer->lock);
	if (tracer->is_on && is_stopped)
		r = switch_off_traces(tracer, ring, error);
	if (tracer->is_on && !r)
		r = switch_ring(tracer, ring, ANY, true, error);
	(void)pthread_mutex_unlock(&tracer->lock);
	return r;
}

/* Any event of a ring would do; one of a thread is of no use once the thread has ended. */
int tracer_wait_fd(const struct tracer *tracer, size_t queue)
{
	const struct tracer_ring *ring = &tracer->rings.items[queue];

	for (size_t i = 0; i < ring->events.count; i++)
		if (ring->events.items[i].tid == ANY)
			return ring->events.items[i].fd;
	return ring->events.items[0].fd;
}

/* The ring of a CPU gets one more thread. */
static int share_ring(struct tracer *tracer, struct tracer_ring *ring, pid_t tid,
		      struct ptvm_error *error)
{
	int r;

	if (!ring->aux.aux && tracer->choice->perf.no_user)
		return 0;
	if (!ring->aux.aux)
		return open_of(tracer, ring, PERF_TASKS, tid, error);
	r = open_of(tracer, ring, PERF_TRACE, tid, error);
	return r ? r : open_beside(tracer, ring, tid, error);
}

static int share_rings(struct tracer *tracer, pid_t tid, struct ptvm_error *error)
{
	int r = 0;

	for (size_t queue = 0; queue < tracer->rings.count && !r; queue++)
		r = share_ring(tracer, &tracer->rings.items[queue], tid, error);
	return r;
}

/* Its events are closed. */
static void close_ring(struct tracer_ring *ring)
{
	aux_ring_unmap(&ring->aux);
	vec_free(&ring->events);
}

/* What was opened for a thread comes behind the owner of the ring, unless the ring is its own. */
static void close_thread(struct tracer *tracer, pid_t tid)
{
	for (size_t queue = 0; queue < tracer->rings.count; queue++) {
		struct tracer_ring *ring = &tracer->rings.items[queue];
		size_t kept = 0;

		for (size_t i = 0; i < ring->events.count; i++)
			if (ring->events.items[i].tid != tid)
				ring->events.items[kept++] = ring->events.items[i];
			else
				(void)tracer->kernel->close(tracer->kernel->context,
							    ring->events.items[i].fd);
		ring->events.count = kept;
	}
	if (tracer->choice->is_per_thread &&
	    tracer->rings.items[tracer->rings.count - 1].tid == tid)
		close_ring(&tracer->rings.items[--tracer->rings.count]);
}

static bool is_traced(const struct tracer *tracer, pid_t tid)
{
	for (size_t queue = 0; queue < tracer->rings.count; queue++)
		for (size_t i = 0; i < tracer->rings.items[queue].events.count; i++)
			if (tracer->rings.items[queue].events.items[i].tid == tid)
				return true;
	return false;
}

int tracer_add_thread(struct tracer *tracer, pid_t tid, struct ptvm_error *error)
{
	int r;

	if (is_traced(tracer, tid))
		return 0;
	r = tracer->choice->is_per_thread ? open_thread(tracer, tid, error)
					  : share_rings(tracer, tid, error);

	if (!r && tracer->is_on)
		r = switch_thread(tracer, tid, true, error);
	if (r)
		close_thread(tracer, tid);
	return r;
}

static int inconsistent(size_t queue, struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_INCONSISTENT, "the kernel's place in ring %zu makes no sense",
			 queue);
}

static int drain_records(struct tracer *tracer, size_t queue, struct recording_out *out,
			 struct trace_loss *loss, uint64_t *bytes, struct ptvm_error *error)
{
	struct aux_ring *ring = &tracer->rings.items[queue].aux;
	struct ring_bytes ready;
	int r;

	if (aux_ring_records(ring, &ready))
		return inconsistent(queue, error);
	if (!(ready.first_size + ready.second_size))
		return 0;
	r = recording_out_records(out, &ready, error);
	if (!r)
		r = trace_loss_read(loss, &ready);
	if (r)
		return r;
	aux_ring_release_records(ring, &ready);
	*bytes += ready.first_size + ready.second_size;
	return 0;
}

static int write_trace(struct tracer *tracer, size_t queue, const struct ring_bytes *ready,
		       struct recording_out *out, struct ptvm_error *error)
{
	struct tracer_ring *ring = &tracer->rings.items[queue];
	const struct recording_trace trace = { .offset = ring->written,
					       .reference = now(),
					       .queue = (uint32_t)queue,
					       .tid = ring->tid,
					       .cpu = ring->cpu };
	int r = recording_out_trace(out, &trace, ready, error);

	if (!r)
		ring->written += ready->first_size + ready->second_size;
	return r;
}

uint64_t tracer_now(const struct tracer *tracer)
{
	struct ring_clock clock;

	if (!tracer->rings.count || aux_ring_clock(&tracer->rings.items[0].aux, &clock) ||
	    !clock.conv.valid)
		return 0;
	return time_conv_ns(&clock.conv, now());
}

/* Bytes are handed out together with an AUX record, which is dropped where there is no room for
 * records: the next one does not begin where the last one ended, or none comes any more. */
static bool is_record_missing(const struct tracer_ring *ring, uint64_t size,
			      const struct trace_loss *loss)
{
	return loss->is_untold || (!size && ring->is_drained && loss->end < ring->written);
}

/* An AUX record tells when the kernel stops a trace, but not when there is no room to begin with.
 * In doubt it has stopped: off and on again is a short gap, and what stopped may stay so. */
static bool has_stopped(const struct tracer_ring *ring, uint64_t size,
			const struct trace_loss *loss)
{
	return loss->stopped_at || size + 1 >= ring->aux.aux_size ||
	       is_record_missing(ring, size, loss);
}

static int drain_trace(struct tracer *tracer, size_t queue, struct recording_out *out,
		       struct trace_loss *loss, uint64_t *bytes, struct ptvm_error *error)
{
	struct tracer_ring *ring = &tracer->rings.items[queue];
	struct ring_bytes ready;
	bool is_stopped;
	uint64_t size;
	int r = 0;

	if (aux_ring_trace(&ring->aux, &ready))
		return inconsistent(queue, error);
	size = ready.first_size + ready.second_size;
	is_stopped = has_stopped(ring, size, loss);
	if (!size && !ring->is_drained && !is_stopped)
		return 0;
	if (size)
		r = write_trace(tracer, queue, &ready, out, error);
	if (r)
		return r;
	/* Once more when nothing came since: the kernel stops a trace some time after it found no
	 * room, and until then resuming it has no effect. */
	ring->is_drained = size != 0;
	aux_ring_release_trace(&ring->aux, &ready);
	*bytes += size;
	r = resume(tracer, ring, is_stopped, error);
	trace_loss_resumed(loss, tracer_now(tracer));
	return r;
}

int tracer_drain(struct tracer *tracer, size_t queue, struct recording_out *out,
		 struct trace_loss *loss, uint64_t *ret_bytes, struct ptvm_error *error)
{
	const struct aux_ring *ring = &tracer->rings.items[queue].aux;
	int r;

	*ret_bytes = 0;
	r = drain_records(tracer, queue, out, loss, ret_bytes, error);
	if (!r && ring->aux && !ring->is_snapshot)
		r = drain_trace(tracer, queue, out, loss, ret_bytes, error);
	return r;
}

int tracer_pending_loss(const struct tracer *tracer, size_t queue, struct trace_loss *loss)
{
	const struct tracer_ring *ring = &tracer->rings.items[queue];
	uint64_t sum = 0, most = 0, lost;
	pid_t tid = ANY;

	for (size_t i = 0; i < ring->events.count; i++) {
		lost = perf_lost(tracer->kernel, ring->events.items[i].fd);
		sum += lost;
		if (lost > most) {
			most = lost;
			tid = ring->events.items[i].tid;
		}
	}
	return trace_loss_pending(loss, sum, tid);
}

static int snapshot_ring(struct tracer *tracer, size_t queue, uint64_t size,
			 struct recording_out *out, struct ptvm_error *error)
{
	struct ring_bytes newest;

	if (!tracer->rings.items[queue].aux.aux)
		return 0;
	if (aux_ring_snapshot(&tracer->rings.items[queue].aux, size, &newest))
		return inconsistent(queue, error);
	if (!(newest.first_size + newest.second_size))
		return 0;
	return write_trace(tracer, queue, &newest, out, error);
}

int tracer_snapshot(struct tracer *tracer, uint64_t size, struct recording_out *out,
		    struct ptvm_error *error)
{
	const bool was_on = tracer->is_on;
	int r = was_on ? tracer_switch(tracer, false, error) : 0;

	for (size_t queue = 0; queue < tracer->rings.count && !r; queue++)
		r = snapshot_ring(tracer, queue, size, out, error);
	if (was_on && !r)
		r = tracer_switch(tracer, true, error);
	return r;
}

void tracer_close(struct tracer *tracer)
{
	for (size_t queue = 0; queue < tracer->rings.count; queue++) {
		struct tracer_ring *ring = &tracer->rings.items[queue];

		for (size_t i = 0; i < ring->events.count; i++)
			(void)tracer->kernel->close(tracer->kernel->context,
						    ring->events.items[i].fd);
		close_ring(ring);
	}
	vec_free(&tracer->rings);
	if (tracer->kernel)
		(void)pthread_mutex_destroy(&tracer->lock);
	memset(tracer, 0, sizeof(*tracer));
}
