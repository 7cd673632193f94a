/* The state of a flow and its batch at some point, to which they can go back. Internal to the flow.
 */
#pragma once

#include "decode/flow/flow_step.h"

struct flow_mark {
	struct pt_flow flow;
	uint64_t position;
	uint32_t count, context_count;
	size_t log_count;
};

/** Copy a flow. What it has no patches for is left as it is: this is done all the time, and mostly
 * without patches. */
void flow_copy(struct pt_flow *to, const struct pt_flow *from);

/** Remember where the flow, its batch and its log are. */
void flow_mark_set(const struct flow_run *run, struct flow_mark *ret);

/** Go back to the mark, and have these patches in force from there on. */
void flow_mark_return(struct flow_run *run, const struct flow_mark *mark,
		      const struct flow_patches *patches);
