/* A clock that only goes on, to measure how long something takes. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { MS_PER_S = 1000, NS_PER_MS = 1000000 };

/** Milliseconds since some moment before the program began (CLOCK_MONOTONIC). */
static inline int64_t monotonic_ms(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * MS_PER_S + time.tv_nsec / NS_PER_MS;
}

/** Wait for a signal to `condition`, by monotonic_ms() until `until_ms` at the latest; perhaps
 * there was none. `lock` is held, and given up meanwhile. */
static inline void monotonic_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  int64_t until_ms)
{
	const struct timespec until = { until_ms / MS_PER_S, until_ms % MS_PER_S * NS_PER_MS };

	(void)pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until);
}
