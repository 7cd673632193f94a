/* Finds the places in the queues where AUX records say that trace was lost. */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Enter into each queue what was lost where, and split its spans there so that no packet is read
 * across. Returns 0 or -PTVM_NO_MEMORY.
 */
int aux_loss_apply(struct perf_data *data);
