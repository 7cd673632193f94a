/* The event as users write it, "intel_pt/cyc=1,mtc_period=3/k": terms in perf's words, checked
 * against what this CPU can do before the kernel refuses them without saying why. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/machine/pt_pmu.h"

struct pt_event {
	uint64_t config;
	bool no_user, no_kernel;
};

/**
 * Read an event.
 *
 * @is_sampled  the trace comes in samples, each of which decodes from its first PSB on: psb_period
 * is 0 then, as in perf
 *
 * What is not named is as in perf: tsc; mtc with a period of 3, or less where the CPU does not have
 * that; psb_period likewise; branch. A value of 0 switches a term off; without a value it is 1.
 * After the second slash, or a colon, u and k restrict the trace to users or kernels, of host and
 * guests alike.
 *
 * Returns 0, or -PTVM_BAD_USAGE with a message that lists what is legal.
 */
int pt_event_parse(const struct pt_pmu *pmu, const char *text, bool is_sampled,
		   struct pt_event *ret, struct ptvm_error *error);
