/* A first look at a sample of the trace: which of its segments to learn from. */
#pragma once

#include "decode/flow/sample_run.h"

/**
 * Leave most segments of a sample out, as all are followed again and again: kept are those at
 * borders, which show since and until when the code was as copied, and of the others each nth.
 *
 * @run        that has begun; its other runs may follow
 * @ret_bytes  of trace, before some was left out
 *
 * Returns whether the kernel's code disagrees with packets in any segment; false, too, when memory
 * is out.
 */
bool sample_survey_thin_out(struct sample_run *run, uint64_t *ret_bytes);
