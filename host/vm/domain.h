/* Domains of libvirt: who they are, whether they run, what their guest agent answers. Without
 * libvirt (-Dlibvirt=disabled) the same calls say so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

/**
 * A connection to libvirt. libvirtd may hang: a call that does not return within a minute fails
 * with -PTVM_SYSTEM, and so do all that come after it. Where signals are held back (interrupt.h),
 * one that waits makes that some seconds.
 */
struct domain_link;

/** What to do where there is none. */
#define DOMAIN_LINK_REMEDY                                                                         \
	"start libvirtd, name another URI (-c), or name guests by their process (-p)"

struct domain {
	char name[256];
	char uuid[40];
	int id; /* -1: not running */
	bool is_running;
	const char *state; /* in a word */
};

/**
 * Connect to libvirt.
 *
 * @uri           NULL: $LIBVIRT_DEFAULT_URI, else qemu:///system
 * @is_read_only  enough to find domains; agents answer others only
 *
 * Returns 0 or -PTVM_SYSTEM. Waits for libvirtd, which may take long.
 */
int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error);

/** Accepts NULL. */
void domain_link_close(struct domain_link *link);

/**
 * What we are connected to, and how many domains run there, as one line of text.
 * Returns 0 or -PTVM_SYSTEM.
 */
int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error);

/** Versions, as "9.0.0"; "" not known. */
struct domain_versions {
	char libvirt[32];
	char vmm[32]; /* of what libvirt would start now, as QEMU */
};

/** Which libvirt and which QEMU is it? */
void domain_link_versions(struct domain_link *link, struct domain_versions *ret);

/**
 * Find a domain by its name, UUID, or the id of a running one, in this order.
 * Returns 0 or -PTVM_NOT_FOUND.
 */
int domain_find(struct domain_link *link, const char *name, struct domain *ret,
		struct ptvm_error *error);

/**
 * Put a question to the guest agent of a running domain.
 *
 * @link       not read-only
 * @uuid       of the domain
 * @command    JSON, as {"execute":"guest-info"}
 * @ret_reply  JSON that the guest made: not to be trusted; free() it
 *
 * Returns 0 or -PTVM_SYSTEM. Waits for the guest, at most some seconds.
 */
int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error);

/**
 * Give a command to the monitor of a running domain's QEMU, for people ("info registers").
 *
 * libvirt notes that somebody did, and calls the domain tainted (custom-monitor): only where the
 * user asked for it.
 *
 * @link       not read-only
 * @uuid       of the domain
 * @ret_reply  what it prints; free() it
 *
 * Returns 0 or -PTVM_SYSTEM.
 */
int domain_monitor_ask(struct domain_link *link, const char *uuid, const char *command,
		       char **ret_reply, struct ptvm_error *error);

/**
 * Read `size` bytes, 4 MiB at most, of a guest's physical memory. That it is memory there must be
 * known: reading devices has effects.
 * Returns 0 or -PTVM_SYSTEM.
 */
int domain_memory_read(struct domain_link *link, const char *uuid, uint64_t address, void *data,
		       size_t size, struct ptvm_error *error);
