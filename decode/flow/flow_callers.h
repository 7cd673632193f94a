/* Compressed returns whose call is neither known nor was seen anywhere (flow_return.h): all places
 * behind direct calls of the function are tried (caller_table.h). As these may be hundreds, and
 * returns further on have as many, it takes more to believe one. Internal to the flow. */
#pragma once

#include "decode/flow/return_places.h"

/**
 * Find where the return at the end of the flow's block went, which has run and is a return to a
 * call that is not known. It is a place that the packets behind it agree with much more than with
 * all others.
 *
 * Returns true with the place, or false: it stays unknown.
 */
bool flow_callers_find(struct pt_flow *flow, struct return_place *ret);
