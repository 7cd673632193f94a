/* A way to a guest's files, as --via names it: agent, ssh=[USER@]HOST, mount=DIR or memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/vm/domain.h"
#include "host/vm/guest_agent.h"
#include "host/vm/vm_memory.h"

struct channel;

/** Which guest it is. */
struct guest_target {
	const char *uri;    /* of libvirt; NULL: the default */
	const char *domain; /* name, UUID or id, "" unknown to libvirt; NULL where none is needed */
	pid_t pid;          /* of the process that runs it; 0: not known */
};

struct guest_way {
	struct channel *channel;
	bool has_asked_monitor;   /* for which libvirt calls the domain tainted: tell the user */
	struct domain_link *link; /* NULL where libvirt is not needed */
	struct domain domain;     /* where it is */
	struct guest_agent agent;
	struct vm_memory memory;
};

enum { GUEST_WAY_BYTES = 4096 }; /* a longer name of one is not meant */

/**
 * Take the first of a list of ways, which commas part; empty where it is too long.
 *
 * @list  what is left of it; NULL after the last one
 */
void guest_way_next(const char **list, char via[GUEST_WAY_BYTES]);

/**
 * Is a guest named once at most, by --domain or by -p?
 *
 * @domain  NULL: not named
 * @pid     0: not named
 *
 * Returns 0, or -PTVM_BAD_USAGE: both are given, or the name is empty.
 */
int guest_way_check_name(const char *domain, pid_t pid, struct ptvm_error *error);

/** The value of -p into `pid`, a pid_t: an option's `call`. Returns 0, or -PTVM_BAD_USAGE if no
 * process can have this number. */
int guest_way_read_pid(void *pid, const char *value, struct ptvm_error *error);

/**
 * Are all ways of a list known, and do they suffice to find the guest?
 *
 * @has_domain  a domain of libvirt is named, or the process of one
 *
 * Returns 0 or -PTVM_BAD_USAGE.
 */
int guest_way_check(const char *list, bool has_domain, struct ptvm_error *error);

/**
 * Open a way. The guest's memory is looked for as QEMU's monitor says where libvirt knows the
 * domain, and else, or where that leads to nothing, searched for in its process.
 *
 * @via  one that is known
 * @ret  stays where it is; release with guest_way_close(), also after a failure
 *
 * Returns 0, or an error of domain_find() (also -PTVM_NOT_FOUND: it does not run),
 * channel_ssh_new(), channel_mount_new(), vm_memory_open(), vm_search_open() or
 * channel_memory_new().
 */
int guest_way_open(const char *via, const struct guest_target *target, struct guest_way *ret,
		   struct ptvm_error *error);

/** Close all of it. */
void guest_way_close(struct guest_way *way);
