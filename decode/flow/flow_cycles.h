/* Cycles of a trace without CYC packets: by MTCs, and the frequency that CBR tells. Internal to the
 * flow. */
#pragma once

#include "decode/flow/pt_flow.h"

/** Count from the present time on: what ran since the last MTC is not known to have run. */
void flow_cycles_begin(struct pt_flow *flow);

/** Count up to the present time, if CYC packets do not and tracing is on. */
void flow_cycles_count(struct pt_flow *flow);
