/* The events of a recording, to make another one with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/recording_out.h"

struct perf_data;

enum { TAKEN_EVENTS = 64 };

struct taken_events {
	struct recording_event items[TAKEN_EVENTS + 1]; /* one more can be added */
	size_t count;
	uint8_t attrs[TAKEN_EVENTS][RECORDING_ATTR_SIZE];
};

/**
 * Take them, with their ids, which stay in `from`; those after the first TAKEN_EVENTS are left out.
 * Not to be moved then. Returns 0 or -PTVM_BAD_INPUT: a kernel before 5.13 described one.
 */
int taken_events_of(const struct perf_data *from, struct taken_events *ret,
		    struct ptvm_error *error);
