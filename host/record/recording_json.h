/* data.ptvm.json, what was known of the machines when a recording was made; its layout is in
 * docs/recording-format.md. It is written when the recording begins, whenever more is known and at
 * the end, each time as a whole, so that there is a complete one at any moment.
 *
 * A machine is named by the process that runs it, a vCPU by its index; what is not there yet is
 * made when something is said of it. Not for several threads at once. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/kvm_debugfs.h"
#include "host/machine/pt_pmu.h"
#include "host/machine/roots.h"
#include "host/vm/vcpu_threads.h"

struct recording_json;

enum {
	RECORDING_JSON_SAMPLES = 4096, /* kept of each vCPU's clock: guests can change it at will */
	RECORDING_JSON_LOSSES = 256,   /* told one by one; more are only counted */
};

/** Who runs a machine; NULL where it is not known. */
struct json_machine {
	pid_t pid;
	const char *name, *uuid;     /* of the domain */
	const char *vmm;             /* its program, as "qemu-system-x86" */
	const char *vmm_version;     /* as "7.2.0" */
	const char *libvirt_version; /* of the libvirt that knows it */
};

/** When KVM was asked for a vCPU's clock. */
enum json_moment { JSON_AT_START, JSON_ON_CHANGE, JSON_AT_END };

struct json_clock {
	uint64_t time_ns; /* perf's clock; 0: not known */
	enum json_moment moment;
	const char *source; /* "debugfs", or the tracepoint's name */
	struct vcpu_clock clock;
};

struct json_loss {
	uint64_t time_ns; /* perf's clock; 0: not known */
	uint64_t bytes;   /* 0: not known how many */
};

/**
 * Begin with what is known of this host: the versions of ptvm and of the kernel, the CPU,
 * kvm_intel's pt_mode.
 *
 * @pmu  with its capabilities; NULL: there is none
 * @ret  release with recording_json_free()
 *
 * Returns 0 or -PTVM_NO_MEMORY, as all that follow do.
 */
int recording_json_new(const struct roots *roots, const char *version, const struct pt_pmu *pmu,
		       struct recording_json **ret);

/** Accepts NULL. */
void recording_json_free(struct recording_json *json);

/** Tell of a machine, or tell more of it. */
int recording_json_machine(struct recording_json *json, const struct json_machine *machine);

/** Tell which thread runs a vCPU, and who says so. */
int recording_json_vcpu(struct recording_json *json, pid_t pid, const struct vcpu_thread *vcpu);

/** Add what KVM said of a vCPU's clock; samples come in order of time. */
int recording_json_clock(struct recording_json *json, pid_t pid, unsigned index,
			 const struct json_clock *sample);

/**
 * Add a loss of trace.
 *
 * @pid    0: nobody knows whose
 * @index  of the vCPU that ran
 */
int recording_json_loss(struct recording_json *json, pid_t pid, unsigned index,
			const struct json_loss *loss);

/**
 * Tell how a kernel was copied.
 *
 * @pid  0: the host's
 * @how  of struct kernel_copy; borrowed: what is added to it later, is told, too. NULL: it was not
 *       copied
 * @why  it was not, in a line; NULL: it was
 */
int recording_json_kernel(struct recording_json *json, pid_t pid, json_t *how, const char *why);

/**
 * Write the file, which only its owner may read, in the place of an older one.
 *
 * @directory  of the recording
 *
 * Returns 0, -PTVM_NO_MEMORY or -PTVM_SYSTEM: what was there is there still.
 */
int recording_json_write(const struct recording_json *json, int directory,
			 struct ptvm_error *error);
