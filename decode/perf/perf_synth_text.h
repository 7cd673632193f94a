/* What records say that perf makes itself, in the words of its dump (perf_text.h): those about ids,
 * traces, threads, CPUs, clocks and events. The kernel knows nothing of these. */
#pragma once

#include <stdio.h>

#include "decode/perf/perf_data.h"

/** Print what follows the name, without the newline; nothing for other types. */
void perf_synth_text(const struct perf_record *record, FILE *out);
