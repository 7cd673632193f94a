/* What each packet means for a flow: the part of pt_flow that reads packets. Internal to the flow.
 */
#pragma once

#include "decode/flow/flow_step.h"

/** Take the pending TNT bits, or the next packet. Returns 0, or -PTVM_END. */
int flow_next(struct flow_run *run);

/** Take a TIP.PGE, which was just read: tracing begins. */
void flow_take_pge(struct flow_run *run, const struct pt_packet *packet);

/** Take a TIP.PGD, which was just read: tracing ends. */
void flow_take_pgd(struct flow_run *run, const struct pt_packet *packet);

/** Take an MTC, which was just read. */
void flow_take_mtc(struct pt_flow *flow, uint8_t payload);

/** Take the next TIP from further on in the packets, for an indirect branch met with TNT bits
 * pending. Returns 0 or -PTVM_INCONSISTENT. */
int flow_fetch_tip(struct flow_run *run, uint64_t *ret);
