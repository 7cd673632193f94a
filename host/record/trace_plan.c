#include "host/record/trace_plan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "host/machine/address_filter.h"
#include "host/machine/cpu_model.h"
#include "host/machine/kernel_file.h"
#include "host/machine/perf_kernel.h"
#include "host/machine/rights.h"
#include "host/record/pt_event.h"
#include "host/record/record_options.h"
#include "host/record/record_targets.h"

enum {
	KIB = 1024,
	RECORDS_KIB = 512,      /* of each ring */
	SAMPLES_KIB = 4 * 1024, /* where these have trace in them */
	AUX_KIB = 16 * 1024,
	SNAPSHOT_KIB = 4 * 1024,
	SAMPLED_KIB = 64,       /* the largest sample */
	STREAM_PAGES = 2,       /* as in perf, the least where trace is read while it is written */
	UNPRIVILEGED_KIB = 128, /* as in perf: of each kind; all that perf_event_mlock_kb allows */
	WATERMARKS = 4,         /* the trace is handed out each quarter of a ring */
	MODE_HOST_GUEST = 1,
};

static const char default_event[] = "intel_pt/cyc/k";
static const char default_event_without_cyc[] = "intel_pt//k";

/* The PMU, and that KVM leaves it to us while guests run. */
static int find_pmu(const struct roots *roots, struct pt_pmu *pmu, struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	int64_t mode;
	int r = pt_pmu_read(roots, pmu, &why);

	if (r)
		return ptvm_fail(error, (enum ptvm_err) - r, "%s: 'ptvm check' says what to do",
				 why.message);
	if (!kernel_file_number(&mode, "%s/module/kvm_intel/parameters/pt_mode", roots->sys) &&
	    mode == MODE_HOST_GUEST)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "kvm_intel gives Intel PT to its guests, and none is left for the "
				 "host to see them: load it with pt_mode=0");
	return 0;
}

/* Where the trace stops on all CPUs as soon as KVM runs one guest. */
static int check_cpu(const struct roots *roots, const struct record_targets *targets,
		     struct ptvm_error *error)
{
	struct cpu_model cpu;

	cpu_model_read(roots, &cpu);
	for (size_t i = 0; i < targets->machines.count && cpu_model_stops_pt_in_vmx(&cpu); i++)
		if (!targets->machines.items[i].vcpus.is_emulated)
			return ptvm_fail(error, PTVM_NOT_FOUND,
					 "Broadwell has no trace while KVM runs a guest: record on "
					 "a later CPU");
	return 0;
}

static int choose_event(const struct record_options *options, struct trace_plan *plan,
			struct ptvm_error *error)
{
	const bool has_cyc = plan->pmu.caps[PT_CAP_PSB_CYC];
	const char *text = options->event ? options->event
			   : has_cyc      ? default_event
					  : default_event_without_cyc;
	struct perf_choice *perf = &plan->choice.perf;
	struct pt_event event;
	int r = pt_event_parse(&plan->pmu, text, options->aux_sample_size, &event, error);

	if (r)
		return r;
	(void)snprintf(plan->event_name, sizeof(plan->event_name), "%s", text);
	perf->pt_type = plan->pmu.type;
	perf->pt_config = event.config;
	perf->no_user = event.no_user;
	perf->no_kernel = event.no_kernel;
	return 0;
}

static int choose_filter(const struct roots *roots, const struct record_options *options,
			 struct trace_plan *plan, struct ptvm_error *error)
{
	char kallsyms[PATH_MAX];

	if (!options->filter)
		return 0;
	if (!plan->pmu.caps[PT_CAP_NUM_ADDRESS_RANGES])
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--filter: this CPU has no address filters");
	(void)snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms", roots->proc);
	plan->choice.filter = plan->filter;
	return address_filter_translate(options->filter, kallsyms, plan->filter,
					sizeof(plan->filter), error);
}

/* Rings have a power of two of pages. */
static uint64_t pages(const struct perf_kernel *kernel, uint64_t bytes)
{
	uint64_t count = 1;

	while (count * kernel->page_size < bytes && count < UINT64_MAX / 4 / kernel->page_size)
		count *= 2;
	return count;
}

/* `is_free`: as much memory may be locked as we like. */
static void choose_sizes(const struct perf_kernel *kernel, const struct record_options *options,
			 bool is_free, struct trace_plan *plan)
{
	const bool is_sampled = options->aux_sample_size;
	const uint64_t aux_kib = is_sampled             ? SAMPLED_KIB
				 : !is_free             ? UNPRIVILEGED_KIB
				 : options->is_snapshot ? SNAPSHOT_KIB
							: AUX_KIB;
	const uint64_t records_kib = !is_free     ? UNPRIVILEGED_KIB
				     : is_sampled ? SAMPLES_KIB
						  : RECORDS_KIB;
	uint64_t records = options->record_size, aux = options->aux_size;

	if (!records)
		records = records_kib * KIB;
	if (!aux)
		aux = options->snapshot_size ? options->snapshot_size : aux_kib * KIB;
	plan->choice.record_pages = pages(kernel, records);
	plan->choice.aux_pages = pages(kernel, aux);
	if (!options->is_snapshot && !is_sampled && plan->choice.aux_pages < STREAM_PAGES)
		plan->choice.aux_pages = STREAM_PAGES;
	aux = plan->choice.aux_pages * kernel->page_size;
	plan->snapshot_size = options->snapshot_size ? options->snapshot_size : aux;
	if (!options->is_snapshot && !is_sampled)
		plan->choice.perf.aux_watermark = (uint32_t)(aux / WATERMARKS);
}

static void choose_targets(const struct record_options *options,
			   const struct record_targets *targets, struct tracer_choice *choice)
{
	choice->tids = &targets->tids;
	choice->cpus = targets->cpus.items;
	choice->cpu_count = targets->cpus.count;
	choice->other_cpus = targets->other_cpus.items;
	choice->other_count = targets->other_cpus.count;
	choice->is_overwrite = options->is_snapshot || options->aux_sample_size;
	choice->perf.aux_sample_size = options->aux_sample_size;
	choice->sample_tracepoint = KVM_TRACEPOINT_EXIT;
	choice->is_per_thread = options->is_per_thread;
	/* Threads that are made later are traced, too. Whole CPUs have them anyway; rings of
	 * threads cannot be inherited. */
	choice->perf.inherit = !options->is_per_thread && targets->tids.items[0] >= 0;
}

int trace_plan_make(const struct roots *roots, const struct perf_kernel *kernel,
		    const struct record_options *options, const struct record_targets *targets,
		    struct trace_plan *ret, struct ptvm_error *error)
{
	struct rights rights;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = find_pmu(roots, &ret->pmu, error);
	if (!r)
		r = check_cpu(roots, targets, error);
	if (!r)
		r = choose_event(options, ret, error);
	if (!r)
		r = choose_filter(roots, options, ret, error);
	if (!r && options->has_kvm_events)
		r = kvm_tracepoints_read(roots, ret->tracepoints, error);
	if (r)
		return r;
	rights_read(roots, &rights);
	choose_sizes(kernel, options, rights_lock_freely(&rights, roots), ret);
	choose_targets(options, targets, &ret->choice);
	ret->choice.perf.has_lost = perf_lost_is_known(kernel);
	ret->choice.tracepoints = ret->tracepoints;
	ret->choice.tracepoint_count = options->has_kvm_events ? KVM_TRACEPOINT_COUNT : 0;
	return 0;
}
