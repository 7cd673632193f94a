/* From what queues have seen of guests to their TSC offsets: runs of observations that agree are
 * joined over all queues, and those that only lost crystal ticks told apart from real changes. */
#pragma once

#include "correlate/tsc_offsets.h"
#include "correlate/vmcs_seen.h"

/**
 * Infer the offsets of all guests in the table, whose runs are put in order and joined.
 * Returns 0 or -PTVM_NO_MEMORY; `ret` is to be freed in any case.
 */
int tsc_offset_infer(struct vmcs_table *table, const struct pt_config *config,
		     struct tsc_offsets *ret);
