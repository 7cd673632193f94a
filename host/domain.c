#include "host/domain.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "host/libvirt_calls.h"

enum { AGENT_SECONDS = 5, VERSION_MAJOR = 1000000, VERSION_MINOR = 1000 };

struct domain_link {
	struct libvirt_calls vir;
	virConnectPtr connection;
};

/* A domain that libvirt handed out, and wants back. */
struct looked_up {
	const struct libvirt_calls *vir;
	virDomainPtr domain; /* NULL: not found */
};

static void looked_up_free(struct looked_up *looked_up)
{
	if (looked_up->domain)
		(void)looked_up->vir->virDomainFree(looked_up->domain);
}

#define _cleanup_looked_up_ _cleanup_(looked_up_free)

/* Without a handler libvirt prints errors itself. */
static void keep_quiet(void *context, virErrorPtr error)
{
}

static int fail(const struct domain_link *link, struct ptvm_error *error, const char *what)
{
	const char *words = link->vir.virGetLastErrorMessage();

	return ptvm_fail(error, PTVM_SYSTEM, "%s: %s", what, words ? words : "no reason is known");
}

static int connect(struct domain_link *link, const char *uri, bool is_read_only,
		   struct ptvm_error *error)
{
	int r = libvirt_load(&link->vir, error);

	if (r)
		return r;
	link->vir.virSetErrorFunc(NULL, keep_quiet);
	link->connection = is_read_only ? link->vir.virConnectOpenReadOnly(uri)
					: link->vir.virConnectOpen(uri);
	return link->connection ? 0 : fail(link, error, uri);
}

int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error)
{
	const char *preset = getenv("LIBVIRT_DEFAULT_URI");
	struct domain_link *link = calloc(1, sizeof(*link));
	int r;

	if (!link)
		return -PTVM_NO_MEMORY;
	if (!uri)
		uri = preset && preset[0] ? preset : "qemu:///system";
	r = connect(link, uri, is_read_only, error);
	if (r)
		domain_link_close(link);
	else
		*ret = link;
	return r;
}

void domain_link_close(struct domain_link *link)
{
	if (!link)
		return;
	if (link->connection)
		(void)link->vir.virConnectClose(link->connection);
	libvirt_unload(&link->vir);
	free(link);
}

static void print_version(unsigned long version, char *text, size_t size)
{
	(void)snprintf(text, size, "%lu.%lu.%lu", version / VERSION_MAJOR,
		       version / VERSION_MINOR % VERSION_MINOR, version % VERSION_MINOR);
}

void domain_link_versions(const struct domain_link *link, struct domain_versions *ret)
{
	unsigned long version;

	*ret = (struct domain_versions){ "", "" };
	if (!link->vir.virConnectGetLibVersion(link->connection, &version))
		print_version(version, ret->libvirt, sizeof(ret->libvirt));
	if (!link->vir.virConnectGetVersion(link->connection, &version) && version)
		print_version(version, ret->vmm, sizeof(ret->vmm));
}

int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error)
{
	_cleanup_free_ char *uri = link->vir.virConnectGetURI(link->connection);
	int running = link->vir.virConnectNumOfDomains(link->connection);
	struct domain_versions versions;

	domain_link_versions(link, &versions);
	if (!uri || running < 0 || !versions.libvirt[0])
		return fail(link, error, uri ? uri : "libvirt");
	(void)snprintf(text, size, "%s, version %s, %d running", uri, versions.libvirt, running);
	return 0;
}

static virDomainPtr look_up(const struct domain_link *link, const char *name)
{
	virDomainPtr domain = link->vir.virDomainLookupByName(link->connection, name);
	char *end;
	long id;

	if (!domain)
		domain = link->vir.virDomainLookupByUUIDString(link->connection, name);
	id = strtol(name, &end, 10);
	if (!domain && end > name && !*end && id >= 0 && id <= INT32_MAX)
		domain = link->vir.virDomainLookupByID(link->connection, (int)id);
	return domain;
}

static struct looked_up look_up_uuid(const struct domain_link *link, const char *uuid)
{
	return (struct looked_up){ &link->vir,
				   link->vir.virDomainLookupByUUIDString(link->connection, uuid) };
}

static const char *state_text(int state)
{
	static const char *const words[] = {
		[VIR_DOMAIN_NOSTATE] = "in no state",    [VIR_DOMAIN_RUNNING] = "running",
		[VIR_DOMAIN_BLOCKED] = "blocked",        [VIR_DOMAIN_PAUSED] = "paused",
		[VIR_DOMAIN_SHUTDOWN] = "shutting down", [VIR_DOMAIN_SHUTOFF] = "shut off",
		[VIR_DOMAIN_CRASHED] = "crashed",        [VIR_DOMAIN_PMSUSPENDED] = "suspended",
	};

	return state >= 0 && (size_t)state < sizeof(words) / sizeof(words[0]) ? words[state]
									      : "unknown";
}

int domain_find(struct domain_link *link, const char *name, struct domain *ret,
		struct ptvm_error *error)
{
	const struct libvirt_calls *vir = &link->vir;
	_cleanup_looked_up_ struct looked_up found = { vir, look_up(link, name) };
	int state, reason;

	memset(ret, 0, sizeof(*ret));
	if (!found.domain)
		return ptvm_fail(error, PTVM_NOT_FOUND, "libvirt knows no domain '%s'", name);
	if (vir->virDomainGetState(found.domain, &state, &reason, 0) < 0 ||
	    vir->virDomainGetUUIDString(found.domain, ret->uuid) < 0)
		return fail(link, error, name);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", vir->virDomainGetName(found.domain));
	ret->id = vir->virDomainIsActive(found.domain) == 1 ? (int)vir->virDomainGetID(found.domain)
							    : -1;
	ret->is_running = state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED;
	ret->state = state_text(state);
	return 0;
}

int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error)
{
	const struct libvirt_calls *vir = &link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(link, uuid);
	char *reply = NULL;

	if (found.domain)
		reply = vir->virDomainQemuAgentCommand(found.domain, command, AGENT_SECONDS, 0);
	if (!reply)
		return fail(link, error, "guest agent");
	*ret_reply = reply;
	return 0;
}

int domain_monitor_ask(struct domain_link *link, const char *uuid, const char *command,
		       char **ret_reply, struct ptvm_error *error)
{
	const struct libvirt_calls *vir = &link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(link, uuid);
	char *reply = NULL;
	int r = -1;

	if (found.domain)
		r = vir->virDomainQemuMonitorCommand(found.domain, command, &reply,
						     VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP);
	if (r < 0 || !reply)
		return fail(link, error, "QEMU's monitor");
	*ret_reply = reply;
	return 0;
}

int domain_memory_read(struct domain_link *link, const char *uuid, uint64_t address, void *data,
		       size_t size, struct ptvm_error *error)
{
	const struct libvirt_calls *vir = &link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(link, uuid);

	if (!found.domain ||
	    vir->virDomainMemoryPeek(found.domain, address, size, data, VIR_MEMORY_PHYSICAL) < 0)
		return fail(link, error, "guest memory");
	return 0;
}
