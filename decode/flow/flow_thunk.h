/* Thunks that are in no copy: code of a few bytes in pages of its own by which a kernel jumps to
 * where a register points, as one with the mitigation of ITS does (arch/x86/kernel/alternative.c).
 * A direct call or jump leads there, and the next packet tells where the thunk jumped to: nothing
 * is lost but its instructions. Internal to the flow. */
#pragma once

#include "decode/flow/flow_step.h"

/**
 * Whether the end of the flow's block leads to a thunk, by which it came to `ip`, as the TIP that
 * was read last says. Other code that is not known may also be followed by a TIP, and calls as
 * those of ftrace may be gone: so it is tried how that agrees with the packets behind it.
 */
bool flow_thunk_is_next(struct flow_run *run, uint64_t ip);
