/* When a queue was traced, by its packets: for those who asked for a time when it was not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/pt/aux_queue.h"
#include "decode/pt/pt_config.h"
#include "decode/pt/time_ranges.h"

/** What lies around a range of times; ns of perf's clock. */
struct traced_times {
	bool within;     /* something was traced in the range, or that is not known */
	uint64_t before; /* the last time that was traced before the range; 0 none */
	uint64_t after;  /* the first one behind it; 0 none */
};

/**
 * Add what a queue says of a range: zero `ret` before the first queue. A pause in the trace is
 * known where a PSB begins what comes after it, as when a thread runs again.
 *
 * Reads the packets up to the range.
 *
 * @mapping  of the file that the queue lies in: pages that were read are given back
 */
void traced_times_add(const struct aux_queue *queue, const struct pt_config *config,
		      const struct bytes *mapping, const struct time_range *range,
		      struct traced_times *ret);
