/* `script --header`: what a recording says of itself and of the machine, in perf's format. */
#pragma once

#include <stdio.h>

#include "decode/perf_data.h"

/** Print all of it, with a frame around. */
void perf_info_print(const struct perf_data *data, FILE *out);
