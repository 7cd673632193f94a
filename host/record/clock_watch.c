#include "host/record/clock_watch.h"

#include <limits.h>

#include "decode/base/vec.h"
#include "host/record/record_targets.h"

/* A look in progress. */
struct look {
	struct clock_watch *watch;
	struct json_clock sample;
	struct recording_json *json;
	int told;
};

static struct watched_clock *find(struct clock_watch *watch, pid_t pid, unsigned index)
{
	for (size_t i = 0; i < watch->known.count; i++)
		if (watch->known.items[i].pid == pid && watch->known.items[i].index == index)
			return &watch->known.items[i];
	return NULL;
}

static bool is_same(const struct vcpu_clock *a, const struct vcpu_clock *b)
{
	return a->offset == b->offset && a->ratio == b->ratio &&
	       a->fraction_bits == b->fraction_bits;
}

static int take(struct look *look, pid_t pid, unsigned index, const struct vcpu_clock *clock)
{
	struct watched_clock *known = find(look->watch, pid, index);

	if (known && look->sample.moment == JSON_ON_CHANGE && is_same(&known->clock, clock))
		return 0;
	if (known)
		known->clock = *clock;
	else if (!vec_push(&look->watch->known, (struct watched_clock){ pid, index, *clock }))
		return -PTVM_NO_MEMORY;
	look->sample.clock = *clock;
	look->told++;
	return recording_json_clock(look->json, pid, index, &look->sample);
}

static int look_at(struct look *look, const struct roots *roots,
		   const struct trace_machine *machine)
{
	char path[PATH_MAX];
	struct vcpu_clock clock;
	int r = 0;

	if (kvm_debugfs_find(roots, machine->vm.pid, 0, path, sizeof(path)))
		return 0;
	for (size_t i = 0; i < machine->vcpus.count && !r; i++)
		if (!vcpu_clock_read(path, machine->vcpus.items[i].index, &clock))
			r = take(look, machine->vm.pid, machine->vcpus.items[i].index, &clock);
	return r;
}

int clock_watch_look(struct clock_watch *watch, const struct roots *roots,
		     const struct record_targets *targets, uint64_t time_ns,
		     enum json_moment moment, struct recording_json *json)
{
	struct look look = {
		.watch = watch,
		.sample = { .time_ns = time_ns, .moment = moment, .source = "debugfs" },
		.json = json,
	};
	int r = 0;

	for (size_t i = 0; i < targets->machines.count && !r; i++)
		r = look_at(&look, roots, &targets->machines.items[i]);
	return r ? r : look.told;
}

void clock_watch_free(struct clock_watch *watch)
{
	vec_free(&watch->known);
}
