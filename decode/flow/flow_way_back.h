/* The way back from code that is not known. Where code calls such, the flow is lost; but what was
 * called mostly returns, by a TNT bit. If just one bit before the next address that is told, taken
 * as the return to a call from before the gap, agrees with the packets that follow, it is the one.
 * Internal to the flow. */
#pragma once

#include "decode/flow/flow_step.h"

/**
 * The flow has just been lost where code calls what is not known: find the way back, and take it if
 * the return is in the TNT packet that was read last.
 *
 * @tnt  `count` branches that were not followed, as in struct pt_flow
 */
void flow_way_back_find(struct flow_run *run, uint64_t tnt, uint32_t count);

/** A TNT packet was read where the flow is lost: if it has the return of the way back, go on there,
 * with the branches behind it waiting. */
void flow_way_back_take(struct flow_run *run, const struct pt_packet *packet);
