/* A way to a guest's files, as --via names it: agent, ssh=[USER@]HOST, mount=DIR or memory. */
#pragma once

#include <stdbool.h>

#include "decode/base/error.h"
#include "host/domain.h"
#include "host/guest_agent.h"
#include "host/vm_memory.h"

struct channel;

struct guest_way {
	struct channel *channel;
	struct domain_link *link; /* NULL where libvirt is not needed */
	struct domain domain;     /* where it is */
	struct guest_agent agent;
	struct vm_memory memory;
};

enum { GUEST_WAY_BYTES = 4096 }; /* a longer name of one is not meant */

/** Take the first of a list of ways, which commas part; empty where it is too long. */
void guest_way_next(const char **list, char via[GUEST_WAY_BYTES]);

/**
 * Are all ways of a list known, and do they suffice to find the guest?
 *
 * @has_domain  a domain of libvirt is named, or the process of one
 *
 * Returns 0 or -PTVM_BAD_USAGE.
 */
int guest_way_check(const char *list, bool has_domain, struct ptvm_error *error);

/**
 * Does it give commands to QEMU's monitor, for which libvirt calls a domain tainted? Its user must
 * have asked for it, and is told.
 */
bool guest_way_asks_monitor(const char *via);

/**
 * Open a way.
 *
 * @via     one that is known
 * @uri     of libvirt; NULL: the default
 * @domain  name, UUID or id, "" unknown to libvirt; NULL where none is needed
 * @ret     stays where it is; release with guest_way_close(), also after a failure
 *
 * Returns 0, or an error of domain_find() (also -PTVM_NOT_FOUND: it does not run),
 * channel_ssh_new(), channel_mount_new(), vm_memory_open() or channel_memory_new().
 */
int guest_way_open(const char *via, const char *uri, const char *domain, struct guest_way *ret,
		   struct ptvm_error *error);

/** Close all of it. */
void guest_way_close(struct guest_way *way);
