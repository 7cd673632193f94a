#include "host/record/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/progress.h"
#include "decode/base/vec.h"
#include "guest/output_owner.h"
#include "host/machine/build_ids.h"
#include "host/machine/perf_kernel.h"
#include "host/machine/pid_list.h"
#include "host/record/record_options.h"
#include "host/record/recorder_json.h"
#include "host/record/recording_features.h"
#include "host/record/recording_start.h"

enum {
	SPARE_VCPUS = 64, /* that can be plugged in while recording */
	TRY_PAGES = 2,
};

/* May we trace at all? Asked before guests are bothered. */
static int try_events(const struct recorder *recorder, struct ptvm_error *error)
{
	struct tracer_choice choice = recorder->plan.choice;
	struct tracer tracer = { 0 };
	int r;

	choice.cpu_count = 1;
	choice.other_count = 0;
	choice.record_pages = choice.aux_pages = TRY_PAGES;
	r = tracer_open(&tracer, recorder->kernel, &choice, error);
	tracer_close(&tracer);
	return r;
}

/* An id for each vCPU. */
static int describe_guests(struct recorder *recorder)
{
	const struct record_targets *targets = &recorder->targets;
	_cleanup_free_ struct guest_vcpu *vcpus = NULL;
	size_t count = 0, at = 0;

	for (size_t i = 0; i < targets->machines.count; i++)
		count += targets->machines.items[i].vcpus.count;
	vcpus = calloc(count ? count : 1, sizeof(*vcpus));
	if (!vcpus)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < targets->machines.count; i++) {
		const struct trace_machine *machine = &targets->machines.items[i];

		for (size_t k = 0; k < machine->vcpus.count; k++)
			vcpus[at++] =
				(struct guest_vcpu){ machine->vm.pid, machine->vcpus.items[k].tid,
						     machine->vcpus.items[k].index };
	}
	return guest_event_make(recorder->plan.choice.perf.has_lost, vcpus, count,
				&recorder->guests);
}

static int create_file(struct recorder *recorder, struct ptvm_error *error)
{
	struct recording_event events[RECORDING_MAX_EVENTS + 1];
	struct recording_events *own = &recorder->events;
	size_t count, spare = SPARE_VCPUS;
	char path[PATH_MAX];
	int r;

	if (!recorder->plan.choice.is_per_thread)
		spare *= recorder->plan.choice.cpu_count + recorder->plan.choice.other_count;
	r = recording_events_make(&recorder->tracer, recorder->plan.event_name,
				  kvm_tracepoint_names, spare, own);
	if (!r)
		r = describe_guests(recorder);
	if (r)
		return r;
	count = own->count;
	memcpy(events, own->items, count * sizeof(events[0]));
	if (recorder->guests.count) {
		events[count] = guest_event_describe(&recorder->guests);
		events[count++].id_spare = SPARE_VCPUS;
	}
	return recording_out_create(&recorder->out,
				    recording_directory_file(&recorder->directory, "data", path),
				    events, count, error);
}

static struct start_id id_of(const struct tracer_event *event, size_t queue)
{
	return (struct start_id){ event->id, queue, event->cpu, event->tid, 0, -1 };
}

/* The ids of all events and guests, for the caller to free; NULL: out of memory. */
static struct start_id *all_ids(const struct recorder *recorder, size_t *ret_count)
{
	const struct tracer *tracer = &recorder->tracer;
	struct start_id *ids;
	size_t count = recorder->guests.count, at = 0;

	for (size_t queue = 0; queue < tracer->rings.count; queue++)
		count += tracer->rings.items[queue].events.count;
	*ret_count = count;
	ids = calloc(count ? count : 1, sizeof(*ids));
	if (!ids)
		return NULL;
	for (size_t queue = 0; queue < tracer->rings.count; queue++)
		for (size_t i = 0; i < tracer->rings.items[queue].events.count; i++)
			ids[at++] = id_of(&tracer->rings.items[queue].events.items[i], queue);
	for (size_t i = 0; i < recorder->guests.count; i++)
		ids[at++] = recorder->guests.all[i];
	return ids;
}

/* The guests whose kernels were copied, for the caller to free; NULL: out of memory. */
static struct start_guest *list_guests(const struct recorder *recorder, size_t *ret_count)
{
	struct start_guest *guests = calloc(recorder->kernels.count + 1, sizeof(*guests));

	*ret_count = 0;
	for (size_t i = 0; guests && i < recorder->kernels.count; i++) {
		const struct recorded_kernel *kernel = &recorder->kernels.items[i];

		if (kernel->machine && kernel->is_copied)
			guests[(*ret_count)++] =
				(struct start_guest){ kernel->machine->vm.pid, kernel->copy.path,
						      &kernel->copy.modules };
	}
	return guests;
}

/* How perf's clock comes from the TSC. */
static void set_clock(const struct recorder *recorder, struct recording_start *start)
{
	struct ring_clock clock;

	if (!aux_ring_clock(&recorder->tracer.rings.items[0].aux, &clock)) {
		start->conv = clock.conv;
		start->time_cycles = clock.cycles;
		start->time_mask = clock.mask;
		start->is_time_short = clock.is_short;
	}
	if (!start->conv.valid)
		(void)fputs("ptvm record: the kernel's clock is not the TSC (unstable, or of a "
			    "hypervisor below): the trace cannot be put in order with what else "
			    "is recorded\n",
			    stderr);
}

static int write_start(struct recorder *recorder, struct ptvm_error *error)
{
	const struct tracer_choice *choice = &recorder->plan.choice;
	_cleanup_free_ struct start_id *ids = NULL;
	_cleanup_free_ struct start_guest *guests = NULL;
	struct recording_start start = { .pmu = &recorder->plan.pmu,
					 .is_snapshot = recorder->options->is_snapshot,
					 .is_per_thread = choice->is_per_thread,
					 .filter = choice->filter };
	struct pid_list processes = { 0 };
	int r;

	ids = all_ids(recorder, &start.id_count);
	guests = list_guests(recorder, &start.guest_count);
	if (!ids || !guests)
		return -PTVM_NO_MEMORY;
	start.ids = ids;
	start.guests = guests;
	set_clock(recorder, &start);
	r = pid_list_processes(recorder->roots, &recorder->targets.tids, &processes);
	start.pids = processes.items;
	start.pid_count = processes.count;
	if (!r)
		r = recording_start_write(recorder->roots, &start, &recorder->out, error);
	vec_free(&processes);
	return r;
}

static int collect_build_ids(const struct recorder *recorder, struct build_ids *ids)
{
	struct pid_list processes = { 0 };
	int r = build_ids_add_host(ids, recorder->roots);

	if (!r)
		r = pid_list_processes(recorder->roots, &recorder->targets.tids, &processes);
	for (size_t i = 0; i < processes.count && !r; i++)
		r = build_ids_add_process(ids, recorder->roots, processes.items[i]);
	vec_free(&processes);
	for (size_t i = 0; i < recorder->kernels.count && !r; i++) {
		const struct recorded_kernel *kernel = &recorder->kernels.items[i];

		if (!kernel->machine || !kernel->is_copied)
			continue;
		r = build_ids_add_guest(ids, kernel->machine->vm.pid, kernel->copy.build_id);
		if (!r)
			r = build_ids_add_guest_modules(ids, kernel->machine->vm.pid,
							&kernel->copy.modules);
	}
	return r;
}

/* What is known by now of the features. */
static int make_features(const struct recorder *recorder, const struct trace_loss *loss,
			 struct recording_features *ret)
{
	struct build_ids build_ids = { 0 };
	const struct recording_facts facts = { .version = PTVM_VERSION,
					       .argc = recorder->argc,
					       .argv = recorder->argv,
					       .events = recorder->events.items,
					       .event_count = recorder->events.count,
					       .first_ns = loss->oldest,
					       .last_ns = loss->newest,
					       .build_ids = &build_ids };
	int r = collect_build_ids(recorder, &build_ids);

	if (!r)
		r = recording_features_make(recorder->roots, &facts, ret);
	build_ids_free(&build_ids);
	return r;
}

static const char early_features[] = "data" RECORDING_EARLY_FEATURES;

/* For a recorder that is killed. */
static int keep_features(const struct recorder *recorder, struct ptvm_error *error)
{
	const struct trace_loss none = { 0 };
	struct recording_features features = { 0 };
	char path[PATH_MAX];
	int r = make_features(recorder, &none, &features);

	if (!r)
		r = recording_features_keep(
			&features,
			recording_directory_file(&recorder->directory, early_features, path),
			error);
	recording_features_free(&features);
	return r;
}

static int write_features(struct recorder *recorder, const struct trace_loss *loss,
			  struct ptvm_error *error)
{
	struct recording_features features = { 0 };
	char path[PATH_MAX];
	int r = make_features(recorder, loss, &features);

	if (!r)
		r = recording_out_finish(&recorder->out, features.items, features.count, error);
	if (!r)
		(void)unlink(recording_directory_file(&recorder->directory, early_features, path));
	recording_features_free(&features);
	return r;
}

int recorder_open(struct recorder *recorder, struct ptvm_error *error)
{
	const struct record_options *options = recorder->options;
	int r = trace_plan_make(recorder->roots, recorder->kernel, options, &recorder->targets,
				&recorder->plan, error);

	if (!r)
		r = try_events(recorder, error);
	if (!r)
		r = recording_directory_make(options->output, &recorder->directory, error);
	if (!r)
		r = recording_kernels_copy_guests(options, &recorder->targets,
						  recorder->directory.path, &recorder->kernels,
						  error);
	if (!r)
		r = tracer_open(&recorder->tracer, recorder->kernel, &recorder->plan.choice, error);
	if (!r)
		r = create_file(recorder, error);
	if (!r)
		r = write_start(recorder, error);
	if (!r)
		r = keep_features(recorder, error);
	if (r)
		return r;
	recorder->drain = (struct drain){ .tracer = &recorder->tracer,
					  .out = &recorder->out,
					  .max_size = options->max_size,
					  .wake_fd = recorder->wake_fd };
	r = drain_start(&recorder->drain, error);
	/* Opening events changes the kernel's code; what changes from now on is recorded. */
	if (!r)
		r = recording_kernels_copy_host(recorder->roots, options, recorder->directory.path,
						&recorder->kernels, error);
	return r ? r : recorder_json_begin(recorder, error);
}

void recorder_keep(struct recorder *recorder)
{
	struct ptvm_error why = { 0 };

	if (recorder->is_written && recording_directory_keep(&recorder->directory, &why))
		(void)fprintf(stderr, "ptvm record: %s\n", ptvm_error_text(&why));
}

int recorder_switch(struct recorder *recorder, bool on, struct ptvm_error *error)
{
	recorder->is_written |= on;
	return tracer_switch(&recorder->tracer, on, error);
}

int recorder_snapshot(struct recorder *recorder, struct ptvm_error *error)
{
	int r = tracer_snapshot(&recorder->tracer, recorder->plan.snapshot_size, &recorder->out,
				error);

	recorder->snapshots += !r;
	return r;
}

/* Event number `event` has one more id. */
static int tell_of_id(struct recorder *recorder, size_t event, const struct start_id *id,
		      struct ptvm_error *error)
{
	int r = recording_out_add_id(&recorder->out, event, id->id, error);

	if (!r && event < recorder->events.count)
		r = recording_events_add_id(&recorder->events, event, id->id);
	return r ? r : recording_start_id(id, &recorder->out, error);
}

/* The events that were opened for a thread. */
static int tell_of_events(struct recorder *recorder, pid_t tid, struct ptvm_error *error)
{
	const struct tracer *tracer = &recorder->tracer;
	int r = 0;

	for (size_t queue = 0; queue < tracer->rings.count && !r; queue++) {
		const struct tracer_ring *ring = &tracer->rings.items[queue];

		for (size_t i = 0; i < ring->events.count && !r; i++) {
			const struct tracer_event *event = &ring->events.items[i];
			const struct start_id id = id_of(event, queue);

			if (event->tid == tid)
				r = tell_of_id(recorder,
					       recording_events_find(&recorder->events, event), &id,
					       error);
		}
	}
	return r;
}

/* The event of the guests comes after all others. */
static int tell_of_vcpu(struct recorder *recorder, const struct record_vcpu *new,
			struct ptvm_error *error)
{
	const pid_t pid = new->machine->vm.pid, tid = new->vcpu.tid;
	const struct start_id *id = guest_event_add(
		&recorder->guests, &(struct guest_vcpu){ pid, tid, new->vcpu.index });
	int r = id ? tell_of_events(recorder, tid, error) : -PTVM_NO_MEMORY;

	if (!r)
		r = tell_of_id(recorder, recorder->events.count, id, error);
	return r ? r : recording_start_thread(recorder->roots, pid, tid, &recorder->out, error);
}

static void say_of_vcpu(const struct record_vcpu *new, const char *why)
{
	progress_clear();
	(void)fprintf(stderr, "ptvm record: vCPU %u came, and is not traced: %s\n", new->vcpu.index,
		      why);
}

/* A thread that cannot be traced does not end the recording: it may have inherited the trace of
 * another one. */
static void trace_vcpu(struct recorder *recorder, const struct record_vcpu *new)
{
	struct ptvm_error why = { 0 };

	if (recorder->targets.tids.items[0] < 0)
		return; /* all that runs is traced */
	if (tracer_add_thread(&recorder->tracer, new->vcpu.tid, &why))
		say_of_vcpu(new, ptvm_error_text(&why));
}

/* Is there a spare id for one more? Those of other events are no fewer. */
static bool can_name_vcpu(const struct recorder *recorder)
{
	const struct recording_ids *guests = &recorder->out.ids[recorder->events.count];

	return guests->count < guests->room;
}

static int add_vcpu(struct recorder *recorder, const struct record_vcpu *new,
		    struct ptvm_error *error)
{
	int started, r;

	if (!can_name_vcpu(recorder)) {
		say_of_vcpu(new, "the recording has room for no more");
		return 0;
	}
	r = drain_stop(&recorder->drain, error);
	recorder->is_full |= r == -PTVM_END;
	if (r || recorder->is_full)
		return recorder->is_full ? 0 : r;
	trace_vcpu(recorder, new);
	r = tell_of_vcpu(recorder, new, error);
	if (!r)
		r = recording_json_vcpu(recorder->json, new->machine->vm.pid, &new->vcpu);
	started = drain_start(&recorder->drain, r ? NULL : error);
	return r ? r : started;
}

static int add_new_vcpus(struct recorder *recorder, struct ptvm_error *error)
{
	struct record_vcpu new;
	int r;

	while ((r = record_targets_refresh(recorder->roots, recorder->options, &recorder->targets,
					   &new)) > 0) {
		r = add_vcpu(recorder, &new, error);
		if (r)
			return r;
	}
	return r;
}

/* The clock of a new vCPU counts as changed. */
int recorder_look(struct recorder *recorder, struct ptvm_error *error)
{
	int r = add_new_vcpus(recorder, error);

	return r ? r : recorder_json_look(recorder, error);
}

static void say_incomplete(const struct recorder *recorder)
{
	progress_clear();
	(void)fprintf(stderr,
		      "ptvm record: %s lacks its end: once there is room, 'ptvm record --repair "
		      "%s' adds it, for perf\n",
		      recorder->directory.path, recorder->directory.path);
}

int recorder_finish(struct recorder *recorder, struct trace_loss *ret_loss,
		    struct ptvm_error *error)
{
	int switched = tracer_switch(&recorder->tracer, false, error);
	int drained = drain_stop(&recorder->drain, error);
	int given, r = 0;

	if (!recorder->is_written)
		return drained ? drained : switched; /* all of it will be removed */
	recorder_keep(recorder);
	if (recorder->options->is_at_exit)
		r = tracer_snapshot(&recorder->tracer, recorder->plan.snapshot_size, &recorder->out,
				    error);
	if (!r)
		r = drain_losses(&recorder->drain, ret_loss);
	if (!r)
		r = write_features(recorder, ret_loss, error);
	if (r)
		say_incomplete(recorder);
	recording_kernels_copy_again(recorder->roots, recorder->options, &recorder->kernels);
	if (!r)
		r = recorder_json_end(recorder, ret_loss, error);
	given = output_owner_give(recorder->directory.path, r ? NULL : error);
	if (!drained && recorder->is_full)
		drained = -PTVM_END;
	return drained ? drained : switched ? switched : r ? r : given;
}

void recorder_free(struct recorder *recorder)
{
	drain_free(&recorder->drain);
	tracer_close(&recorder->tracer);
	recording_out_close(&recorder->out);
	if (!recorder->is_written)
		recording_directory_remove(&recorder->directory);
	recording_directory_close(&recorder->directory);
	recording_json_free(recorder->json);
	recording_kernels_free(&recorder->kernels);
	clock_watch_free(&recorder->clocks);
	recording_events_free(&recorder->events);
	guest_event_free(&recorder->guests);
	record_targets_free(&recorder->targets);
}
