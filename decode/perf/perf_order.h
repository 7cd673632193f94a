/* The order of records: by time, those without one first, otherwise as they came. */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Sort stably. The recorder writes one ring buffer after the other, so that records come in few
 * long runs in order of time: these are found and merged. Returns 0 or -PTVM_NO_MEMORY.
 */
int perf_order(struct perf_records *records);
