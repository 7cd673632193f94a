/* A sample of the recording as a line: of events that are not the trace, such as tracepoints or
 * cycles, as perf prints them beside it. */
#pragma once

#include <stdbool.h>

#include "decode/base/text.h"
#include "decode/perf/perf_sample.h"
#include "decode/print/print_config.h"
#include "decode/print/sample_origin.h"
#include "decode/print/tracepoint_text.h"

/** The kind of events that one is of. */
enum event_kind sample_kind(const struct perf_event *event);

/** Whether an event may have samples: those of the trace and those that ask for records have none.
 */
bool sample_is_expected(const struct perf_event *event);

/** Read a SAMPLE. Returns its event; NULL where that is the trace, or it cannot be read. */
const struct perf_event *sample_read(const struct perf_data *data, const struct perf_record *record,
				     struct perf_sample *ret);

/** Whether it was taken in a guest. */
bool sample_in_guest(const struct perf_record *record);

/**
 * Append the line of a SAMPLE; with a call chain it is several, and a blank one. What `origin` has
 * is shown where the sample has none of its own.
 * Appends nothing where the options do not want it.
 */
void sample_line_add(struct text *text, const struct print_config *config,
		     const struct perf_record *record, const struct sample_origin *origin,
		     struct tracepoint_text *points);
