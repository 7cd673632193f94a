/* Tracepoints of KVM that tell beside a trace when guests are entered and left and why, and how
 * their TSC is set. */
#pragma once

#include <stdint.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

enum { KVM_TRACEPOINT_EXIT = 1, KVM_TRACEPOINT_COUNT = 3 };

/** Their names, as "kvm:kvm_entry". */
extern const char *const kvm_tracepoint_names[KVM_TRACEPOINT_COUNT];

/**
 * Look up the numbers that perf_event_open() knows them by, in tracefs.
 * Returns 0, or -PTVM_NOT_FOUND: it is not mounted, not readable, or KVM is not loaded.
 */
int kvm_tracepoints_read(const struct roots *roots, uint64_t ids[KVM_TRACEPOINT_COUNT],
			 struct ptvm_error *error);
