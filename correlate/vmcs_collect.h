/* All queues of a recording walked at once, by as many threads as there are processors. */
#pragma once

#include "correlate/vmcs_seen.h"

/** Asked now and then, between 0 and 1 done; false ends the walk. */
struct collect_watch {
	bool (*go_on)(void *context, double done);
	void *context;
};

/**
 * Collect what all queues tell; `ret` is to be freed in any case.
 * Returns 0, -PTVM_NO_MEMORY, -PTVM_SYSTEM (no threads), or -PTVM_END when told to stop.
 */
int vmcs_collect(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		 const struct collect_watch *watch, struct vmcs_table *ret);
