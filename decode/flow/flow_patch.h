/* Kernel code that was patched after it was copied, as a flow sees it.
 *
 * A kernel switches features on and off while it runs: it rewrites a jump of 2 or 5 bytes to a NOP
 * and back (jump labels), or the target of a call. The copy of its text has one of the two forms.
 * Where packets and code disagree, the flow may have taken a wrong turn at such a site since the
 * last packet with an address. It then goes back (flow_mark) and follows the code with the patches
 * that patch_inference and patch_search found; those in force are kept here. Internal to the flow.
 */
#pragma once

#include "decode/flow/flow_step.h"

/** Begin a segment: no patches. */
void flow_patch_init(struct pt_flow *flow);

/** Hardly any patch will be found: little work is spent on it in the rest of the segment. */
void flow_patch_expect_little(struct pt_flow *flow);

/** Tell the flow's code, which may be another thread's than before, about the patches so far. */
void flow_patch_settle(struct pt_flow *flow);

/** A block as the patches have it: `block`, or a variant that ends with the first patch in it, or
 * where code ends that stands for a trampoline; NULL when memory is out. */
struct block *flow_patch_block(struct pt_flow *flow, struct block *block);

/** Whether there may be jump labels in the block: it is kernel code. */
bool flow_patch_is_possible(const struct block *block);

/** Whether code at `ip` stands for a trampoline of ftrace: what runs is not where it is. A block
 * that begins there is `patched`, but in a trial of patches. */
bool flow_patch_stands_in(const struct pt_flow *flow, const struct machine *machine, uint64_t ip);

/** Whether two patches do the same, at whatever time. */
bool flow_patch_is_same(const struct flow_patch *a, const struct flow_patch *b);

/** Whether a patch changes the instruction at `site`, at whatever time. */
bool flow_patch_is_about(const struct flow_patch *patch, const struct machine *machine,
			 uint64_t site);

/** What the instruction at `site` is where the flow is. Returns the patch that says so, or NULL: it
 * is as copied. */
const struct flow_patch *flow_patch_find(const struct flow_patches *patches,
					 const struct machine *machine, uint64_t site,
					 const struct pt_flow *flow, struct patched_insn *ret);
