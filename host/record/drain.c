#include "host/record/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/quiet_thread.h"
#include "host/record/recording_out.h"
#include "host/record/tracer.h"

enum {
	RINGS_PER_THREAD = 8, /* a thread copies as fast as several CPUs trace */
	WAIT_MS = 100,        /* how old a record can get in a ring that does not fill */
};

static bool is_stopping(const struct drain *drain)
{
	return __atomic_load_n(&drain->stop, __ATOMIC_ACQUIRE);
}

static uint64_t epoch_now(struct drain *drain)
{
	uint64_t epoch;

	(void)pthread_mutex_lock(&drain->lock);
	epoch = drain->epoch;
	(void)pthread_mutex_unlock(&drain->lock);
	return epoch;
}

static bool all_have_reached(const struct drain *drain, uint64_t epoch)
{
	for (size_t i = 0; i < drain->worker_count; i++)
		if (drain->workers[i].epoch < epoch)
			return false;
	return true;
}

/* A round ends when every thread has emptied all its rings since it began: what was in a ring
 * before is in the file then. */
static int end_pass(struct drain_worker *worker, uint64_t epoch, bool has_written)
{
	struct drain *drain = worker->drain;
	int r = 0;

	(void)pthread_mutex_lock(&drain->lock);
	worker->epoch = epoch;
	drain->is_round_begun |= has_written;
	if (drain->is_round_begun && all_have_reached(drain, drain->epoch)) {
		drain->epoch++;
		drain->is_round_begun = false;
		r = recording_out_round(drain->out, &worker->error);
	}
	(void)pthread_mutex_unlock(&drain->lock);
	return r;
}

static int pass(struct drain_worker *worker)
{
	struct drain *drain = worker->drain;
	const uint64_t epoch = epoch_now(drain);
	uint64_t bytes, sum = 0;
	int r = 0;

	for (size_t queue = worker->first; queue < worker->end && !r; queue++) {
		r = tracer_drain(drain->tracer, queue, drain->out, &drain->losses[queue], &bytes,
				 &worker->error);
		sum += bytes;
	}
	if (!r && drain->max_size && recording_out_size(drain->out) >= drain->max_size)
		r = -PTVM_END;
	return r ? r : end_pass(worker, epoch, sum != 0);
}

static void start_waiting(const struct drain_worker *worker, struct pollfd *fds)
{
	for (size_t queue = worker->first; queue < worker->end; queue++)
		*fds++ = (struct pollfd){ .fd = tracer_wait_fd(worker->drain->tracer, queue),
					  .events = POLLIN };
}

/* An event whose thread has ended is always ready, and would keep us from waiting. */
static void wait_for_rings(const struct drain_worker *worker, struct pollfd *fds)
{
	const struct perf_kernel *kernel = worker->drain->tracer->kernel;
	const size_t count = worker->end - worker->first;

	(void)kernel->wait(kernel->context, fds, count, WAIT_MS);
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			fds[i].fd = -1;
}

static void wake(const struct drain *drain)
{
	const uint64_t one = 1;

	if (drain->wake_fd >= 0)
		(void)!write(drain->wake_fd, &one, sizeof(one));
}

static void *work(void *context)
{
	struct drain_worker *worker = context;
	struct pollfd fds[RINGS_PER_THREAD];
	int r = 0;

	start_waiting(worker, fds);
	while (!r && !is_stopping(worker->drain)) {
		r = pass(worker);
		if (!r)
			wait_for_rings(worker, fds);
	}
	/* What came until we were stopped. */
	worker->result = r ? r : pass(worker);
	if (r)
		wake(worker->drain);
	return NULL;
}

static int add_losses(struct drain *drain, size_t count)
{
	struct trace_loss *grown;

	if (count <= drain->loss_count)
		return 0;
	grown = reallocarray(drain->losses, count, sizeof(*grown));
	if (!grown)
		return -PTVM_NO_MEMORY;
	memset(grown + drain->loss_count, 0, (count - drain->loss_count) * sizeof(*grown));
	drain->losses = grown;
	drain->loss_count = count;
	return 0;
}

static int prepare(struct drain *drain)
{
	const size_t rings = drain->tracer->rings.count;
	const size_t count = (rings + RINGS_PER_THREAD - 1) / RINGS_PER_THREAD;

	if (add_losses(drain, rings))
		return -PTVM_NO_MEMORY;
	drain->workers = calloc(count ? count : 1, sizeof(*drain->workers));
	if (!drain->workers)
		return -PTVM_NO_MEMORY;
	drain->worker_count = count;
	drain->stop = false;
	(void)pthread_mutex_init(&drain->lock, NULL);
	for (size_t i = 0; i < count; i++)
		drain->workers[i] = (struct drain_worker){
			.drain = drain,
			.first = rings * i / count,
			.end = rings * (i + 1) / count,
			.epoch = drain->epoch ? drain->epoch - 1 : 0,
		};
	return 0;
}

/* The first `count` threads. */
static int join(struct drain *drain, size_t count, struct ptvm_error *error)
{
	int r = 0;

	__atomic_store_n(&drain->stop, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < count; i++) {
		struct drain_worker *worker = &drain->workers[i];

		(void)pthread_join(worker->thread, NULL);
		/* A failure is worse than a limit. */
		if (worker->result && (!r || r == -PTVM_END)) {
			r = worker->result;
			if (error && worker->error.code)
				*error = worker->error;
		}
	}
	(void)pthread_mutex_destroy(&drain->lock);
	free(drain->workers);
	drain->workers = NULL;
	drain->worker_count = 0;
	return r;
}

int drain_start(struct drain *drain, struct ptvm_error *error)
{
	int r = prepare(drain);

	if (r)
		return r;
	for (size_t i = 0; i < drain->worker_count; i++) {
		errno = quiet_thread_start(&drain->workers[i].thread, work, &drain->workers[i]);
		if (errno) {
			r = ptvm_fail_errno(error, "cannot start a thread");
			(void)join(drain, i, NULL);
			return r;
		}
	}
	return 0;
}

int drain_stop(struct drain *drain, struct ptvm_error *error)
{
	return drain->workers ? join(drain, drain->worker_count, error) : 0;
}

int drain_losses(struct drain *drain, struct trace_loss *ret)
{
	int r = 0;

	for (size_t i = 0; i < drain->loss_count && !r; i++) {
		r = tracer_pending_loss(drain->tracer, i, &drain->losses[i]);
		if (!r)
			r = trace_loss_add(ret, &drain->losses[i]);
	}
	return r;
}

void drain_free(struct drain *drain)
{
	(void)drain_stop(drain, NULL);
	for (size_t i = 0; i < drain->loss_count; i++)
		trace_loss_free(&drain->losses[i]);
	free(drain->losses);
	drain->losses = NULL;
	drain->loss_count = 0;
}
