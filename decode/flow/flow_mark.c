#include "decode/flow/flow_mark.h"

#include <stddef.h>
#include <string.h>

#include "decode/flow/flow_patch.h"
#include "decode/flow/mismatch_log.h"

void flow_copy(struct pt_flow *to, const struct pt_flow *from)
{
	memcpy(to, from,
	       offsetof(struct pt_flow, patches.items) +
		       from->patches.count * sizeof(*from->patches.items));
	pt_cursor_settle_copy(&to->cursor, &from->cursor);
}

void flow_mark_set(const struct flow_run *run, struct flow_mark *ret)
{
	flow_copy(&ret->flow, run->flow);
	ret->position = pt_cursor_position(&run->flow->cursor);
	ret->count = run->batch->count;
	ret->context_count = run->batch->context_count;
	if (run->flow->where.log)
		ret->log_count = run->flow->where.log->count;
}

void flow_mark_return(struct flow_run *run, const struct flow_mark *mark,
		      const struct flow_patches *patches)
{
	struct pt_flow *flow = run->flow;
	struct flow_learned learned = flow->learned;
	uint64_t work = flow->patches.work;

	flow_copy(flow, &mark->flow);
	flow->learned = learned;
	memcpy(flow->patches.items, patches->items, sizeof(patches->items));
	flow->patches.count = patches->count;
	flow->patches.work = work;
	flow->patches.code = NULL;
	flow_patch_settle(flow);
	run->batch->count = mark->count;
	run->batch->context_count = mark->context_count;
	if (flow->where.log)
		flow->where.log->count = mark->log_count;
}
