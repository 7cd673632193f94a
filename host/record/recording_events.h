/* The events of a tracer as a recording describes them: one for each kind, with the ids of all
 * that were opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/recording_out.h"
#include "host/record/tracer.h"

enum { RECORDING_MAX_EVENTS = 16 };

/** Zero-initialise before use. */
struct recording_events {
	struct recording_event items[RECORDING_MAX_EVENTS];
	struct perf_event_attr attrs[RECORDING_MAX_EVENTS];
	struct {
		enum perf_kind kind;
		size_t tracepoint;
	} keys[RECORDING_MAX_EVENTS];
	size_t count;
};

/**
 * Describe what is open.
 *
 * @trace_name   of the event of the trace; borrowed
 * @tracepoint_names  of the tracepoints; borrowed
 * @spare        how many more ids of each there may come to be
 *
 * Returns 0 or -PTVM_NO_MEMORY; release with recording_events_free(), in any case.
 */
int recording_events_make(const struct tracer *tracer, const char *trace_name,
			  const char *const *tracepoint_names, size_t spare,
			  struct recording_events *ret);

/** The number of the event that `event` is one of; `count` where there is none. */
size_t recording_events_find(const struct recording_events *events,
			     const struct tracer_event *event);

/** Event number `number` has one more id. Returns 0 or -PTVM_NO_MEMORY. */
int recording_events_add_id(struct recording_events *events, size_t number, uint64_t id);

/** Accepts zeroes. */
void recording_events_free(struct recording_events *events);
