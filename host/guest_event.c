#include "host/guest_event.h"

#include <stdlib.h>
#include <string.h>

#include "host/perf_open.h"

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

int guest_event_make(bool has_lost, const struct guest_vcpu *vcpus, size_t count,
		     struct guest_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->ids = calloc(count + 1, sizeof(*ret->ids));
	ret->all = calloc(count + 1, sizeof(*ret->all));
	if (!ret->ids || !ret->all) {
		guest_event_free(ret);
		return -PTVM_NO_MEMORY;
	}
	make_attr(has_lost, ret);
	ret->count = count;
	for (size_t i = 0; i < count; i++) {
		ret->ids[i] = first_id + i;
		ret->all[i] = (struct start_id){
			.id = ret->ids[i],
			.cpu = -1,
			.tid = vcpus[i].tid,
			.machine_pid = vcpus[i].machine_pid,
			.vcpu = (int32_t)vcpus[i].index,
		};
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
