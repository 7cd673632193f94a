/* Compressed returns to calls that are not known. Behind a gap the flow does not know all calls
 * that are open, and packets do not tell where such a return goes; so it would be lost up to the
 * next address that a packet tells. If just one place that may be behind the call agrees with the
 * packets that follow, it is the one. Internal to the flow. */
#pragma once

#include "decode/flow/flow_step.h"

/**
 * The flow's block, which has run, ends with a return to a call that is not known: find where it
 * went.
 *
 * Returns true with the address in `ret`, and open calls as they are there; or false: it stays
 * unknown.
 */
bool flow_return_find(struct flow_run *run, uint64_t *ret);
