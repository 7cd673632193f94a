/* A clock that only goes on, to measure how long something takes. */
#pragma once

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
