#include "host/record/guest_event.h"

#include <stdlib.h>
#include <string.h>

#include "host/record/perf_open.h"

/* The kernel counts ids from 1; it will not come that far. */
static const uint64_t first_id = (uint64_t)1 << 48;

/* A dummy, of which not even the other records are asked for. */
static void make_attr(bool has_lost, struct guest_event *event)
{
	const struct perf_choice choice = { .has_lost = has_lost };
	struct perf_event_attr attr;

	perf_attr_make(PERF_SWITCHES, &choice, &attr);
	attr.context_switch = 0;
	attr.exclude_host = 1;
	attr.exclude_guest = 0;
	memcpy(event->attr, &attr, sizeof(event->attr));
}

const struct start_id *guest_event_add(struct guest_event *event, const struct guest_vcpu *vcpu)
{
	const size_t count = event->count + 1;
	uint64_t *ids = reallocarray(event->ids, count, sizeof(*ids));
	struct start_id *all = reallocarray(event->all, count, sizeof(*all));

	event->ids = ids ? ids : event->ids;
	event->all = all ? all : event->all;
	if (!ids || !all)
		return NULL;
	ids[event->count] = first_id + event->count;
	all[event->count] = (struct start_id){
		.id = ids[event->count],
		.cpu = -1,
		.tid = vcpu->tid,
		.machine_pid = vcpu->machine_pid,
		.vcpu = (int32_t)vcpu->index,
	};
	return &all[event->count++];
}

int guest_event_make(bool has_lost, const struct guest_vcpu *vcpus, size_t count,
		     struct guest_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	make_attr(has_lost, ret);
	for (size_t i = 0; i < count; i++)
		if (!guest_event_add(ret, &vcpus[i])) {
			guest_event_free(ret);
			return -PTVM_NO_MEMORY;
		}
	return 0;
}

struct recording_event guest_event_describe(const struct guest_event *event)
{
	return (struct recording_event){ event->attr, event->ids, event->count, "dummy:G" };
}

void guest_event_free(struct guest_event *event)
{
	free(event->ids);
	free(event->all);
	memset(event, 0, sizeof(*event));
}
