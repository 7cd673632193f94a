/* AUXTRACE_INFO and the PT event's attr: how the trace was made. */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Set pt, have_pt, is_timeless and the PT events of `data` by its auxtrace_info, events and
 * features. Older versions of perf wrote fewer words; what these leave out stays unknown.
 */
void perf_pt_info_read(struct perf_data *data);
