#include "decode/base/quiet_thread.h"

#include <signal.h>

int quiet_thread_start(pthread_t *ret, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, NULL, run, context);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
