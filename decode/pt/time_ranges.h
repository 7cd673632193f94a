/* The times that the option --time of `ptvm script` selects. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"

enum { TIME_RANGES_MAX = 16 };

/** Times in ns of perf's clock; both ends included. */
struct time_ranges {
	struct time_range {
		uint64_t from, to;
	} items[TIME_RANGES_MAX];
	unsigned count; /* 0: all */
};

/** Whether a time is in the ranges, or there are none. */
bool time_ranges_have(const struct time_ranges *ranges, uint64_t time_ns);

/**
 * Parse the argument of --time: START,STOP with either missing, several separated by spaces, or
 * percentages (10%, 10%/2, 0%-15%, several of the last two separated by commas); seconds.fraction.
 * Times rise and do not overlap; parts may.
 *
 * @first, @last  ns of the first and last event of the recording, for percentages; untrusted
 *
 * Returns 0, or -PTVM_BAD_USAGE.
 */
int time_ranges_parse(const char *text, uint64_t first, uint64_t last, struct time_ranges *ret,
		      struct ptvm_error *error);

/** Whether the text needs @first and @last. */
bool time_ranges_have_percent(const char *text);
