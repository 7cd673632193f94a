/* Code that was changed after it was copied.
 *
 * A kernel switches features by rewriting, while it runs, a jump of 2 or 5 bytes into a NOP and
 * back, or a call; the copy of its text has one form. Where packets and code disagree, the way
 * since the last address that a packet told may have taken a wrong turn at such a place:
 * patch_search tells where, the flow goes back, and what it finds there is here. Not for others
 * than pt_flow, flow_step and patch_search. */
#pragma once

#include "decode/flow_step.h"
#include "decode/patch_trail.h"

/** Where a batch began: what is in it since can be taken back. */
struct flow_mark {
	struct pt_flow flow;
	uint64_t position;
	uint32_t count, context_count;
};

/** Begin a segment: no patches. */
void flow_patch_init(struct pt_flow *flow);

/** Tell the flow's code, which may be another thread's than before, about the patches so far. */
void flow_patch_settle(struct pt_flow *flow);

/** Remember where the flow and its batch are. */
void flow_mark_set(const struct flow_run *run, struct flow_mark *ret);

/** Go back to the mark, and have these patches in force from there on. */
void flow_mark_return(struct flow_run *run, const struct flow_mark *mark,
		      const struct flow_patches *patches);

/** A block as the patches have it: `block`, or a variant that ends with the first patch in it; NULL
 * when memory is out. */
struct block *flow_patch_block(struct pt_flow *flow, struct block *block);

/** Note in the flow's trail, if it has one, that it was lost or found again. */
static inline void flow_patch_note(struct pt_flow *flow, enum trail_kind kind)
{
	if (flow->where.trail)
		patch_trail_note(flow->where.trail,
				 (struct trail_event){
					 .kind = kind,
					 .position = pt_cursor_position(&flow->cursor),
					 .time = flow->clock.now,
				 });
}

/** Count an indirect branch or return that programs seldom make, and note it. */
void flow_patch_judge(struct pt_flow *flow, const struct block *block, uint64_t ip);

/** Whether there may be jump labels in the block: it is kernel code. */
bool flow_patch_is_possible(const struct block *block);

/** Whether two patches do the same, at whatever time. */
bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b);

/** The patch of a site that holds where the flow is; NULL: it is as copied. */
const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow);
