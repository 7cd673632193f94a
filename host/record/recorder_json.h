/* What a recorder writes to data.ptvm.json, and when: at the start, when a clock changed, at the
 * end. recording_json.h has the file itself. */
#pragma once

#include "decode/base/error.h"

struct recorder;
struct trace_loss;

/**
 * Write what is known when the trace is about to begin: machines, vCPUs, kernels, clocks.
 * Returns 0 or an error of recording_json_write(), as the others here do.
 */
int recorder_json_begin(struct recorder *recorder, struct ptvm_error *error);

/** Read the clocks of all vCPUs, and write the file again if one of them has changed. */
int recorder_json_look(struct recorder *recorder, struct ptvm_error *error);

/** Read the clocks for the last time, add what was lost, and write the file again. */
int recorder_json_end(struct recorder *recorder, const struct trace_loss *loss,
		      struct ptvm_error *error);
