#include "host/breakable_call.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"

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

/* Wait a moment; `since_ms` is when a signal was first seen to wait, 0: none does. */
static void wait(struct call *call, int64_t *since_ms)
{
	const int64_t now = monotonic_ms();

	if (!interrupt_waits())
		*since_ms = 0;
	else if (!*since_ms)
		*since_ms = now;
	monotonic_wait(&call->ended, &call->lock, now + LOOK_MS);
}

/* Returns whether it ended before our patience did. */
static bool wait_for(struct call *call, int64_t patience_ms)
{
	int64_t since_ms = 0;
	bool has_ended;

	(void)pthread_mutex_lock(&call->lock);
	while (!call->has_ended && (!since_ms || monotonic_ms() - since_ms < patience_ms))
		wait(call, &since_ms);
	has_ended = call->has_ended;
	call->is_left = !has_ended;
	(void)pthread_mutex_unlock(&call->lock);
	return has_ended;
}

static bool are_signals_held(void)
{
	sigset_t held;

	return !pthread_sigmask(SIG_SETMASK, NULL, &held) && sigismember(&held, SIGINT) == 1;
}

bool breakable_call(void (*run)(void *context), void (*drop)(void *context), void *context,
		    int64_t patience_ms)
{
	struct call *call = are_signals_held() ? call_new(run, drop, context) : NULL;
	pthread_t thread;

	/* Without a thread it is as patient as any other. */
	if (!call || pthread_create(&thread, NULL, work, call)) {
		if (call)
			call_free(call);
		run(context);
		return true;
	}
	if (!wait_for(call, patience_ms)) {
		(void)pthread_detach(thread);
		return false;
	}
	(void)pthread_join(thread, NULL);
	call_free(call);
	return true;
}
