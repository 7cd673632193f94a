/* A virtual machine to trace: its process, who it is, and the threads that run its vCPUs. */
#pragma once

#include <stdbool.h>

#include "decode/base/error.h"
#include "decode/base/number_ranges.h"
#include "host/machine/roots.h"
#include "host/vm/domain.h"
#include "host/vm/vcpu_threads.h"
#include "host/vm/vm_process.h"

struct trace_machine {
	struct vm_process vm;
	char name[256], uuid[40]; /* of the domain; "" not known */
	bool has_domain;          /* libvirt knows it */
	struct domain_versions versions;
	struct vcpu_threads vcpus;
};

/**
 * Find a machine by what libvirt calls it (name, UUID or id), or without libvirt by QEMU's -name or
 * -uuid.
 *
 * @uri   of libvirt, as domain_link_open()
 * @ret   zeroed; release with trace_machine_free(), in any case
 *
 * Returns 0, -PTVM_NOT_FOUND (there is none, it does not run), -PTVM_INCONSISTENT (several), or
 * -PTVM_NO_MEMORY.
 */
int trace_machine_of_domain(const struct roots *roots, const char *uri, const char *name,
			    struct trace_machine *ret, struct ptvm_error *error);

/**
 * The machine that process `pid` runs.
 * Returns 0, -PTVM_NOT_FOUND (no process), -PTVM_BAD_INPUT (it runs no machine), or
 * -PTVM_NO_MEMORY.
 */
int trace_machine_of_process(const struct roots *roots, pid_t pid, struct trace_machine *ret,
			     struct ptvm_error *error);

/**
 * Keep only the vCPUs in `wanted`.
 * Returns 0, or -PTVM_NOT_FOUND where one is not there.
 */
int trace_machine_select(struct trace_machine *machine, const struct number_ranges *wanted,
			 struct ptvm_error *error);

/** Accepts zeroes. */
void trace_machine_free(struct trace_machine *machine);
