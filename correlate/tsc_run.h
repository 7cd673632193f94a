/* A stretch of time in which one guest's TSC keeps one relation to the host's: observations of both
 * that lie on a line. Takes in any number of them in constant memory.
 *
 * The line has slope 1 (guest = host + offset) unless the guest's TSC is scaled. KVM scales only
 * where frequencies differ by 250 ppm or more, so that slopes near 1 are 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/pt_config.h"

enum { TSC_RATIO_BITS = 48 }; /* fraction bits of a TSC multiplier in VMX */

#define TSC_RATIO_ONE ((uint64_t)1 << TSC_RATIO_BITS)

/** Both TSCs at one moment. */
struct tsc_pair {
	uint64_t host;  /* all 64 bits, as far as known */
	uint64_t guest; /* 56 bits */
};

/** How good an observation is. */
enum tsc_quality {
	TSC_DOUBTFUL, /* crystal ticks may be missing */
	TSC_GOOD,
	TSC_CONFIRMED, /* crystal and host TSC agreed before and after */
};

struct tsc_run {
	struct tsc_pair first, last;  /* the line is measured from `first`, `last` is the latest */
	uint64_t from;                /* host TSC of the earliest */
	int64_t low, high;            /* how far guest - host strays from the first; slope 1 only */
	__int128 sum;                 /* of these */
	double slope_low, slope_high; /* what the slope may be, less 1; both 0 for slope 1 */
	uint64_t count;
	enum tsc_quality quality; /* the best */
	size_t queue;             /* where the first was seen */
};

/** How far observations may lie apart: two ticks of the crystal, in ticks of the TSC. */
int64_t tsc_tolerance(const struct pt_config *config);

/** A run of one observation. */
struct tsc_run tsc_run_begin(const struct tsc_pair *pair, enum tsc_quality quality, size_t queue);

/** Take an observation in; false, and nothing changed, when it does not lie on the line. */
bool tsc_run_add(struct tsc_run *run, const struct tsc_pair *pair, enum tsc_quality quality,
		 int64_t tolerance);

/** Make a scaled run of observations on a line whose slope is not 1: of `run`, which looks constant
 * and is one of them, or several that stray by more than half the tolerance; `second`, which is
 * one; and a third. False, and nothing changed, when there is no such line. */
bool tsc_run_tilt(struct tsc_run *run, const struct tsc_run *second, const struct tsc_pair *third,
		  int64_t tolerance);

/**
 * Take another run in; false, and nothing changed, when it does not lie on the line.
 *
 * A run of slope 1 stays within the tolerance. Of a scaled one its ends and its slope must fit,
 * since no more of it is kept: some of its observations may then be off by twice the tolerance.
 */
bool tsc_run_join(struct tsc_run *run, const struct tsc_run *other, int64_t tolerance);

/** Whether `a` is the better evidence of two. */
bool tsc_run_is_better(const struct tsc_run *a, const struct tsc_run *b);

/** For qsort(): runs by time, where that is the same by queue and guest's time. */
int tsc_run_compare(const void *a, const void *b);

/** guest - host of slope 1, best guess; modulo 2^56. */
uint64_t tsc_run_offset(const struct tsc_run *run);

/** Whether the slope is 1. */
static inline bool tsc_run_is_constant(const struct tsc_run *run)
{
	return run->slope_low == 0 && run->slope_high == 0;
}

/** a - b of 56-bit stamps, of two's complement. */
static inline int64_t tsc_difference(uint64_t a, uint64_t b)
{
	return (int64_t)((a - b) << 8) >> 8;
}
