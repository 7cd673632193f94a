/* The way back from code that is not known. Behind a gap the flow does not know which calls are
 * open, and packets do not tell where a compressed return goes; so nothing would be known up to the
 * next address that a packet tells, and often little from there on. What is known are the calls
 * from before the gap, and where a function returned to elsewhere in the trace (return_sites.h). If
 * just one of these places agrees with the packets that follow, it is the one. Internal to the
 * flow. */
#pragma once

#include "decode/flow_step.h"

/** Begin a segment: how much may be tried in it. */
void flow_return_init(struct pt_flow *flow);

/**
 * The block that the flow has just left ended with a return to a call that is not known: find where
 * it went.
 *
 * Returns true with the address in `ret`, and open calls as they are there; or false: it stays
 * unknown.
 */
bool flow_return_find(struct flow_run *run, uint64_t *ret);

/**
 * The flow has just been lost where code calls what is not known: find where that returns to before
 * a packet tells an address, and go on from there (flow_return_resume()).
 *
 * @tnt  `count` branches that were not followed, as in struct pt_flow
 */
void flow_return_look(struct flow_run *run, uint64_t tnt, uint32_t count);

/** A TNT packet was read where the flow is lost: if it is the one that has the return that was
 * found, go on there, with the branches behind it waiting. */
void flow_return_resume(struct flow_run *run, const struct pt_packet *packet);
