/* An event that never happens, with an id for each vCPU of the guests. By these ids readers learn
 * that there are guests, in which processes, and which threads run which of their vCPUs: perf looks
 * for a guest's kernel in the recording only if an id belongs to that guest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/record/recording_out.h"
#include "host/record/recording_start.h"

struct guest_vcpu {
	pid_t machine_pid, tid; /* the process, and the thread in it */
	unsigned index;
};

/** Zero-initialise before use. */
struct guest_event {
	uint8_t attr[RECORDING_ATTR_SIZE];
	uint64_t *ids;        /* `count` of them */
	struct start_id *all; /* what each of them stands for */
	size_t count;
};

/**
 * Make it.
 *
 * @has_lost  as in the recording's other events, see perf_lost_is_known()
 *
 * Returns 0 or -PTVM_NO_MEMORY; release with guest_event_free().
 */
int guest_event_make(bool has_lost, const struct guest_vcpu *vcpus, size_t count,
		     struct guest_event *ret);

/**
 * One more vCPU, while recording.
 * Returns what the new id stands for; it is the last of `all`. NULL: out of memory.
 */
const struct start_id *guest_event_add(struct guest_event *event, const struct guest_vcpu *vcpu);

/** As recording_out_create() wants it; borrowed from `event`. */
struct recording_event guest_event_describe(const struct guest_event *event);

/** Accepts zeroes. */
void guest_event_free(struct guest_event *event);
