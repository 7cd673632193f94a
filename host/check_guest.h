/* Can this guest be traced, and its code be had? */
#pragma once

#include <sys/types.h>

#include "host/check_list.h"
#include "host/machine/roots.h"

struct check_guest {
	const char *uri;  /* of libvirt; NULL: the default */
	const char *name; /* domain by name, UUID or id, or QEMU's -name; NULL: by `pid` */
	pid_t pid;
};

/** Say whether libvirt can be reached at `uri`. */
void check_libvirt(const char *uri, struct check_list *list);

/** Look at one guest: its domain, process, vCPU threads, agent. */
void check_guest(const struct roots *roots, const struct check_guest *guest,
		 struct check_list *list);
