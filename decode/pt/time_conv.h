/* TSC ticks <-> nanoseconds of perf's clock, as in the kernel's perf_event_mmap_page. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct time_conv {
	bool valid; /* false: the recording has no time, or none that means anything */
	uint16_t shift;
	uint32_t mult;
	uint64_t zero; /* ns; often a wrapped negative number */
};

/**
 * ns of perf's clock at `tsc` ticks, modulo 2^64 (linux/perf_event.h, time_zero of struct
 * perf_event_mmap_page).
 */
static inline uint64_t time_conv_ns(const struct time_conv *conv, uint64_t tsc)
{
	uint64_t quotient = tsc >> conv->shift;
	uint64_t remainder = tsc & (((uint64_t)1 << conv->shift) - 1);

	return conv->zero + quotient * conv->mult + ((remainder * conv->mult) >> conv->shift);
}

/** TSC ticks at `ns` of perf's clock; a round trip loses up to one tick. */
static inline uint64_t time_conv_tsc(const struct time_conv *conv, uint64_t ns)
{
	uint64_t t = ns - conv->zero;
	uint64_t mult = conv->mult ? conv->mult : 1;

	return ((t / mult) << conv->shift) + (((t % mult) << conv->shift) / mult);
}
