/* What KVM says of its machines in debugfs: a directory for each, THREAD-FD, after the thread that
 * created it, and in it one for each vCPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

/** How a vCPU's TSC comes from the host's: guest = (host * ratio >> fraction_bits) + offset. */
struct vcpu_clock {
	int64_t offset; /* ticks; of the nested guest where that is what runs */
	uint64_t ratio; /* 1 << fraction_bits where the CPU does not scale */
	unsigned fraction_bits;
};

/**
 * The directory of machine number `nth` (from 0) that process `pid` has.
 * Returns 0, or -PTVM_NOT_FOUND.
 */
int kvm_debugfs_find(const struct roots *roots, pid_t pid, size_t nth, char *path, size_t size);

/**
 * Read a vCPU's clock as it is now.
 *
 * @path  from kvm_debugfs_find()
 *
 * Returns 0, -PTVM_NOT_FOUND (no such vCPU), -PTVM_SYSTEM, or -PTVM_BAD_INPUT.
 */
int vcpu_clock_read(const char *path, unsigned index, struct vcpu_clock *ret);

/** Does the vCPU's TSC run at the host's rate? */
static inline bool vcpu_clock_is_unscaled(const struct vcpu_clock *clock)
{
	return clock->ratio == (uint64_t)1 << clock->fraction_bits;
}
