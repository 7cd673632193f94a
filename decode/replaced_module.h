/* Modules of a kernel that are not what was copied any more: they were unloaded, and others came to
 * where they were. Packets tell it where a branch leads into the middle of a function and what
 * follows disagrees. From then on a flow has no code for such a module, to the end of its segment:
 * better a gap than instructions that never ran. Internal to the flow. */
#pragma once

#include "decode/pt_flow.h"

/** Packets and code disagree in flow->block: was a module replaced? */
void replaced_module_note(struct pt_flow *flow);

/** Whether the code of a block is not to be believed. */
bool replaced_module_has(const struct pt_flow *flow, const struct block *block);
