/* Branches that programs seldom make, such as a return to a place that follows no call. Each may be
 * the end of a wrong turn, so it counts against a patch that leads there. Internal to the flow. */
#pragma once

#include "decode/pt_flow.h"

/** Look at the target of an indirect branch or return, at the end of `block`, that a TIP told;
 * where it is odd, count it in the flow and note it in its log. */
void odd_branch_note(struct pt_flow *flow, const struct block *block, uint64_t ip);

/** Whether only an interrupt may return there: no function begins, and no call is before it. */
bool odd_branch_needs_interrupt(struct machine *machine, uint64_t ip, uint64_t time_ns);
