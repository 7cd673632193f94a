/* Reads how KVM sets the TSC of vCPUs, and remembers it, to tell what has changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/machine/kvm_debugfs.h"
#include "host/machine/roots.h"
#include "host/record/recording_json.h"

struct record_targets;

/** Zero-initialise before use. */
struct clock_watch {
	struct {
		struct watched_clock {
			pid_t pid;
			unsigned index;
			struct vcpu_clock clock;
		} * items;
		size_t count, room;
	} known;
};

/**
 * Read the clocks of all vCPUs.
 *
 * @time_ns  now, of perf's clock; 0: not known
 * @moment   JSON_ON_CHANGE: only clocks that are new or have changed are added
 * @json     where they are added
 *
 * Returns how many clocks were added, or -PTVM_NO_MEMORY. What debugfs does not show is left out.
 */
int clock_watch_look(struct clock_watch *watch, const struct roots *roots,
		     const struct record_targets *targets, uint64_t time_ns,
		     enum json_moment moment, struct recording_json *json);

/** Accepts zeroes. */
void clock_watch_free(struct clock_watch *watch);
