/* Branches that programs seldom make, such as a return to a place that is not behind a call. They
 * are a sign that the flow has taken a wrong turn before, so they count against a patch that leads
 * there. Internal to the flow. */
#pragma once

#include "decode/flow/pt_flow.h"

/** Look at the indirect branch or return at the end of `block`, which by a TIP goes to `ip`: if it
 * is odd, count it in the flow and note it in its log. */
void odd_branch_note(struct pt_flow *flow, const struct block *block, uint64_t ip);

/** Whether only a return from an interrupt can lead to `ip`: no function begins there, and it is
 * not behind a call. */
bool odd_branch_needs_interrupt(struct machine *machine, uint64_t ip, uint64_t time_ns);

/** Whether a function begins at `ip`, or just before it, with an ENDBR. */
bool odd_branch_is_entry(struct machine *machine, uint64_t ip, uint64_t time_ns);
