/* INT3s that a CPU meets while another changes the code. To replace an instruction, a kernel first
 * puts an INT3 over its beginning (arch/x86/kernel/alternative.c, text_poke_bp_batch()). No copy
 * has it, and whoever comes by goes to the handler, by a TIP without a FUP, as with any software
 * interrupt (SDM "Far Transfers"), and from there to where the instruction leads that is to come,
 * or was there. That tells which instruction it was. Internal to the flow. */
#pragma once

#include "decode/flow/flow_step.h"

/**
 * A TIP that belongs to the next branch goes to `ip`. If that is the kernel's handler of INT3, and
 * one of the instructions before the next branch that needs a packet is where it came from, follow
 * the code up to that, and make the flow's block an INT3 there. Otherwise nothing changes. Returns
 * 0; or -PTVM_INCONSISTENT with the gap reported and sync lost.
 */
int flow_int3_find(struct flow_run *run, uint64_t ip);
