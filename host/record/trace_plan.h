/* How to trace: the options of a recording, against what this machine offers, as a tracer wants
 * them. */
#pragma once

#include <stdint.h>

#include "decode/base/error.h"
#include "host/machine/kvm_tracepoints.h"
#include "host/machine/pt_pmu.h"
#include "host/record/tracer.h"

struct perf_kernel;
struct record_options;
struct record_targets;

struct trace_plan {
	struct pt_pmu pmu;
	char event_name[256]; /* with its options, for the recording */
	char filter[512];
	uint64_t tracepoints[KVM_TRACEPOINT_COUNT];
	uint64_t snapshot_size; /* bytes */
	struct tracer_choice choice;
};

/**
 * Make a plan.
 *
 * @targets  found; borrowed by the plan, which also points into itself and must stay where it is
 *
 * Returns 0; -PTVM_NOT_FOUND: there is no intel_pt, or none while KVM runs guests;
 * -PTVM_BAD_USAGE: an option that this CPU has not; or -PTVM_NO_MEMORY.
 */
int trace_plan_make(const struct roots *roots, const struct perf_kernel *kernel,
		    const struct record_options *options, const struct record_targets *targets,
		    struct trace_plan *ret, struct ptvm_error *error);
