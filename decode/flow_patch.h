/* Jump labels that were changed after the code was copied.
 *
 * A kernel switches features by rewriting, while it runs, a jump of 2 or 5 bytes into a NOP and
 * back; the copy of its text has one form. Where packets and code disagree, the way since the last
 * address that a packet told may have taken a wrong turn at such a place: the flow goes back, tries
 * the other form of those that it passed, and keeps what agrees with the packets. Not for others
 * than pt_flow and flow_step. */
#pragma once

#include "decode/flow_step.h"

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

/** A block as the patches have it: `block`, or a variant that ends with the first patch in it; NULL
 * when memory is out. */
struct block *flow_patch_block(struct pt_flow *flow, struct block *block);

/** Of a trial: count an indirect branch or return that programs seldom make. */
void flow_patch_judge(struct pt_flow *flow, const struct block *block, uint64_t ip);

/**
 * Packets and code disagree: find the patch by which they do not.
 *
 * Returns true with the flow and its batch back at the mark and the patch in force; or false with
 * the mark set anew, the disagreement stays. The search is bounded, per segment.
 */
bool flow_patch_search(struct flow_run *run, struct flow_mark *mark);
