#include "correlate/interrupt.h"

#include <pthread.h>

void interrupt_hold(struct interrupt *interrupt)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &set, &interrupt->before);
}

bool interrupt_waits(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
				     sigismember(&set, SIGHUP));
}

void interrupt_release(const struct interrupt *interrupt)
{
	(void)pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
}
