/* The process that runs a VM, as /proc shows it: QEMU, with libvirt or without, Firecracker,
 * cloud-hypervisor, crosvm. All of it is what that process says of itself. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

enum vm_accelerator {
	VM_ACCELERATOR_UNKNOWN, /* its file descriptors are hidden from us, and nothing else says */
	VM_KVM,
	VM_TCG, /* emulated: Intel PT shows the emulator at work, not the guest's code */
};

enum vm_protection {
	VM_OPEN,
	VM_SEV,
	VM_TDX,
	VM_GUEST_MEMFD, /* private memory without more being known */
};

struct vm_process {
	pid_t pid;
	char comm[32];
	char name[256]; /* QEMU's -name, printable; "" none */
	char uuid[40];  /* QEMU's -uuid; "" none */
	enum vm_accelerator accelerator;
	enum vm_protection protection;
	unsigned vcpu_fds; /* vCPUs of KVM it holds open */
	bool has_agent;    /* QEMU has a channel for the guest agent */
};

/**
 * Look at a process.
 * Returns 0; -PTVM_NOT_FOUND, no such process; or -PTVM_BAD_INPUT, it runs no VM.
 */
int vm_process_read(const struct roots *roots, pid_t pid, struct vm_process *ret,
		    struct ptvm_error *error);

/**
 * Find the process of a QEMU by the -name or -uuid on its command line. Others may have that on
 * theirs: by its name it must look like a machine's, and one that is seen to have vCPUs of KVM goes
 * before all that are not. Returns 0, -PTVM_NOT_FOUND, or -PTVM_INCONSISTENT: several have this
 * name.
 */
int vm_process_find(const struct roots *roots, const char *name, struct vm_process *ret,
		    struct ptvm_error *error);
