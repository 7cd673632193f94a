/* Which threads of a VM's process run its vCPUs.
 *
 * Several parties know: KVM (in debugfs), the cgroups that libvirt makes, the ioctl that a thread
 * sits in, and the name that the VMM gave it. None is always there and none is always right, so all
 * are asked; those that are trusted most come first, and a later one can agree or object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

/* In falling order of trust. */
enum vcpu_way {
	VCPU_BY_DEBUGFS = 1, /* KVM's own word, Linux 6.0 and later */
	VCPU_BY_CGROUP = 2,  /* libvirt's vcpuN */
	VCPU_BY_IOCTL = 4,   /* in KVM_RUN of vCPU N at this moment */
	VCPU_BY_NAME = 8,    /* "CPU N/KVM" */
};

struct vcpu_thread {
	unsigned index;
	pid_t tid;
	unsigned ways;    /* enum vcpu_way: who named this thread */
	unsigned against; /* who named another one for this vCPU */
	bool is_gone;     /* it has ended; set by those who look again */
};

/** Zero-initialise before use. */
struct vcpu_threads {
	struct vcpu_thread *items; /* in order of their index */
	size_t count, room;
	bool is_emulated; /* QEMU's "CPU N/TCG": no KVM */
};

/**
 * Find the vCPU threads of process `pid`; none is not an error.
 * Returns 0, -PTVM_NOT_FOUND where there is no such process, or -PTVM_NO_MEMORY.
 */
int vcpu_threads_find(const struct roots *roots, pid_t pid, struct vcpu_threads *ret,
		      struct ptvm_error *error);

/** Accepts zeroes. */
void vcpu_threads_free(struct vcpu_threads *threads);

/** "debugfs, cgroup, ioctl, name": the ways in `ways`, in `size` bytes of `text`. */
const char *vcpu_ways_text(unsigned ways, char *text, size_t size);
