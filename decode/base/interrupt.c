#include "decode/base/interrupt.h"

#include <pthread.h>
#include <time.h>

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* A signal that is held back waits even where it is ignored. */
sigset_t interrupt_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	if (!is_ignored(SIGHUP))
		(void)sigaddset(&set, SIGHUP);
	return set;
}

void interrupt_hold(struct interrupt *interrupt)
{
	const sigset_t set = interrupt_signals();

	(void)pthread_sigmask(SIG_BLOCK, &set, &interrupt->before);
}

bool interrupt_waits(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
				     sigismember(&set, SIGHUP));
}

bool interrupt_take(void)
{
	const struct timespec at_once = { 0 };
	const sigset_t set = interrupt_signals();

	return sigtimedwait(&set, NULL, &at_once) > 0;
}

void interrupt_release(const struct interrupt *interrupt)
{
	(void)pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
}
