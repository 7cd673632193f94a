#include "host/vm/breakable_call.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"
#include "decode/base/quiet_thread.h"

enum { LOOK_MS = 50 };

/* Belongs to both threads until one of them leaves. */
struct call {
	void (*run)(void *context);
	void (*drop)(void *context);
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended, is_left;
};

static void call_free(struct call *call)
{
	(void)pthread_mutex_destroy(&call->lock);
	(void)pthread_cond_destroy(&call->ended);
	free(call);
}

static struct call *call_new(void (*run)(void *context), void (*drop)(void *context), void *context)
{
	struct call *call = malloc(sizeof(*call));

	if (!call)
		return NULL;
	*call = (struct call){ .run = run, .drop = drop, .context = context };
	(void)pthread_mutex_init(&call->lock, NULL);
	(void)pthread_cond_init(&call->ended, NULL);
	return call;
}

static void *work(void *context)
{
	struct call *call = context;
	bool is_left;

	call->run(call->context);
	(void)pthread_mutex_lock(&call->lock);
	call->has_ended = true;
	is_left = call->is_left;
	(void)pthread_cond_signal(&call->ended);
	(void)pthread_mutex_unlock(&call->lock);
	if (is_left) {
		call->drop(call->context);
		call_free(call);
	}
	return NULL;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns whether it ended in time. */
static bool wait_for(struct call *call, int64_t patience_ms, int64_t limit_ms)
{
	int64_t now = monotonic_ms(), until = now + limit_ms;
	bool has_ended;

	(void)pthread_mutex_lock(&call->lock);
	while (!call->has_ended && now < until) {
		if (interrupt_waits())
			until = earlier(until, now + patience_ms);
		monotonic_wait(&call->ended, &call->lock, earlier(until, now + LOOK_MS));
		now = monotonic_ms();
	}
	has_ended = call->has_ended;
	call->is_left = !has_ended;
	(void)pthread_mutex_unlock(&call->lock);
	return has_ended;
}

bool breakable_call(void (*run)(void *context), void (*drop)(void *context), void *context,
		    int64_t patience_ms, int64_t limit_ms)
{
	struct call *call = call_new(run, drop, context);
	pthread_t thread;

	/* Without a thread it is as patient as any other. */
	if (!call || quiet_thread_start(&thread, work, call)) {
		if (call)
			call_free(call);
		run(context);
		return true;
	}
	if (!wait_for(call, patience_ms, limit_ms)) {
		(void)pthread_detach(thread);
		return false;
	}
	(void)pthread_join(thread, NULL);
	call_free(call);
	return true;
}
