/* A sample of the recording as a line: of events that are not the trace, such as tracepoints or
 * cycles, as perf prints them beside it. */
#pragma once

#include <stdbool.h>

#include "decode/printer.h"
#include "decode/text.h"
#include "decode/tracepoint_text.h"

/** The kind of events that one is of. */
enum event_kind sample_kind(const struct perf_event *event);

/** Whether an event may have samples: those of the trace and those that ask for records have none.
 */
bool sample_is_expected(const struct perf_event *event);

/**
 * Append the line of a SAMPLE; with a call chain it is several, and a blank one.
 * Returns false, and appends nothing, where the options do not want it.
 */
bool sample_line_add(struct text *text, const struct print_config *config,
		     const struct perf_record *record, struct tracepoint_text *points);
