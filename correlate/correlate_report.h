/* What `ptvm correlate` has found, as text or as JSON. */
#pragma once

#include <stdio.h>

#include "correlate/offset_recorded.h"
#include "correlate/tsc_offsets.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/sideband.h"

struct correlate_report {
	const struct perf_data *data;
	const struct sideband *sideband;
	const struct offsets_recorded *recorded;
	const struct tsc_offsets *offsets;
};

/** The thread that ran a guest when it was first seen; -1 unknown. */
int32_t report_thread(const struct correlate_report *report, const struct vmcs_offsets *guest);

/** Print a line for each VMCS and segment as perf does, and then a table. */
void report_print(const struct correlate_report *report, FILE *out);

/** Print the same as JSON. Returns 0 or -PTVM_NO_MEMORY. */
int report_print_json(const struct correlate_report *report, FILE *out);

/** Why a guest has no offset: a phrase. */
const char *report_reason(const struct correlate_report *report, const struct vmcs_offsets *guest);
