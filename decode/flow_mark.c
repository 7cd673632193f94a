#include "decode/flow_mark.h"

#include <stddef.h>
#include <string.h>

#include "decode/flow_patch.h"

void flow_mark_set(const struct flow_run *run, struct flow_mark *ret)
{
	const struct pt_flow *flow = run->flow;

	/* Done all the time, and mostly without patches: unused ones are not copied. */
	memcpy(&ret->flow, flow,
	       offsetof(struct pt_flow, patches.items) +
		       flow->patches.count * sizeof(*flow->patches.items));
	ret->position = pt_cursor_position(&run->flow->cursor);
	ret->count = run->batch->count;
	ret->context_count = run->batch->context_count;
}

void flow_mark_return(struct flow_run *run, const struct flow_mark *mark,
		      const struct flow_patches *patches)
{
	struct pt_flow *flow = run->flow;
	struct replaced_modules replaced = flow->replaced;
	uint64_t work = flow->patches.work;
	bool met_kernel = flow->met_kernel, is_informed = flow->is_informed;

	*flow = mark->flow;
	flow->met_kernel = met_kernel;
	flow->is_informed = is_informed;
	flow->replaced = replaced;
	memcpy(flow->patches.items, patches->items, sizeof(patches->items));
	flow->patches.count = patches->count;
	flow->patches.work = work;
	flow->patches.code = NULL;
	flow_patch_settle(flow);
	run->batch->count = mark->count;
	run->batch->context_count = mark->context_count;
}
