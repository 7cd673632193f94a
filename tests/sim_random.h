/* Random numbers that a seed fixes on every machine, for simulations that must be repeatable. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
	uint64_t state;
};

/** 64 random bits (splitmix64). */
static inline uint64_t sim_random_next(struct sim_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/** A number below `limit`, which is not 0. */
static inline unsigned sim_random_below(struct sim_random *random, unsigned limit)
{
	return (unsigned)((sim_random_next(random) >> 32) % limit);
}

/** True once in `n` times, n > 0. */
static inline bool sim_random_once_in(struct sim_random *random, unsigned n)
{
	return !sim_random_below(random, n);
}
