/* An event's attr as words, as perf prints it in a recording's header. */
#pragma once

#include <stdio.h>

#include "decode/perf/perf_data.h"

/** Print ", name = value" for all in the attr that is not 0. */
void perf_attr_print(const struct perf_event *event, FILE *out);
