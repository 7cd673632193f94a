/* All queues of a recording walked at once, by as many threads as there are processors. */
#pragma once

#include "correlate/vmcs_seen.h"
#include "correlate/watch.h"

/**
 * Collect what all queues tell; `ret` is to be freed in any case. Pages of the trace that lie in
 * `mapping` are given back.
 * Returns 0, -PTVM_NO_MEMORY, -PTVM_SYSTEM (no thread could be made, errno says why), or -PTVM_END
 * when told to stop.
 */
int vmcs_collect(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		 struct bytes mapping, const struct watch *watch, struct vmcs_table *ret);
