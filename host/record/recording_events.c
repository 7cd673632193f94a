#include "host/record/recording_events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct tracer_event *event, const char *trace_name,
			   const char *const *tracepoint_names)
{
	switch (event->kind) {
	case PERF_TRACE: return trace_name;
	case PERF_TRACEPOINT: return tracepoint_names[event->tracepoint];
	case PERF_SAMPLES: return "cpu-clock";
	default: return "dummy:u";
	}
}

size_t recording_events_find(const struct recording_events *events,
			     const struct tracer_event *event)
{
	size_t i = 0;

	while (i < events->count && (events->keys[i].kind != event->kind ||
				     events->keys[i].tracepoint != event->tracepoint))
		i++;
	return i;
}

static void describe(const struct tracer *tracer, const struct tracer_event *event,
		     struct recording_events *events)
{
	const size_t i = events->count;

	assert(i < RECORDING_MAX_EVENTS);
	tracer_attr_make(tracer->choice, event->kind, event->tracepoint, &events->attrs[i]);
	events->keys[i].kind = event->kind;
	events->keys[i].tracepoint = event->tracepoint;
	events->items[i].attr = &events->attrs[i];
	events->count++;
}

int recording_events_add_id(struct recording_events *events, size_t number, uint64_t id)
{
	struct recording_event *event = &events->items[number];
	uint64_t *ids =
		reallocarray((void *)(uintptr_t)event->ids, event->id_count + 1, sizeof(id));

	if (!ids)
		return -PTVM_NO_MEMORY;
	ids[event->id_count++] = id;
	event->ids = ids;
	return 0;
}

int recording_events_make(const struct tracer *tracer, const char *trace_name,
			  const char *const *tracepoint_names, size_t spare,
			  struct recording_events *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t queue = 0; queue < tracer->rings.count; queue++) {
		const struct tracer_ring *ring = &tracer->rings.items[queue];

		for (size_t i = 0; i < ring->events.count; i++) {
			const struct tracer_event *event = &ring->events.items[i];
			const size_t at = recording_events_find(ret, event);

			if (at == ret->count)
				describe(tracer, event, ret);
			ret->items[at].name = name_of(event, trace_name, tracepoint_names);
			ret->items[at].id_spare = spare;
			if (recording_events_add_id(ret, at, event->id))
				return -PTVM_NO_MEMORY;
		}
	}
	return 0;
}

void recording_events_free(struct recording_events *events)
{
	for (size_t i = 0; i < events->count; i++)
		free((void *)(uintptr_t)events->items[i].ids);
	memset(events, 0, sizeof(*events));
}
