/* `script --header`: what a recording says of itself and of the machine, in perf's format. */
#pragma once

#include <stdio.h>

#include "decode/perf/perf_data.h"

/** Print the header between two lines of "# ========". */
void perf_info_print(const struct perf_data *data, FILE *out);
