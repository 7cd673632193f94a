#include "tests/taken_events.h"

#include <string.h>

#include "decode/perf/perf_data.h"

int taken_events_of(const struct perf_data *from, struct taken_events *ret,
		    struct ptvm_error *error)
{
	size_t i;

	for (i = 0; i < from->events.count && i < TAKEN_EVENTS; i++) {
		const struct perf_event *event = &from->events.items[i];

		if (event->attr.size < RECORDING_ATTR_SIZE)
			return ptvm_fail(error, PTVM_BAD_INPUT, "%s: an attr is short", from->path);
		memcpy(ret->attrs[i], event->attr.data, RECORDING_ATTR_SIZE);
		ret->items[i] =
			(struct recording_event){ ret->attrs[i], event->ids, event->id_count };
	}
	ret->count = i;
	return 0;
}
