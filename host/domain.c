#include "host/domain.h"

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"

enum { AGENT_SECONDS = 5, VERSION_MAJOR = 1000000, VERSION_MINOR = 1000 };

struct domain_link {
	virConnectPtr connection;
};

static void domain_free(virDomainPtr *domain)
{
	if (*domain)
		(void)virDomainFree(*domain);
}

#define _cleanup_domain_ _cleanup_(domain_free)

/* libvirt prints its errors where nobody takes them. */
static void keep_quiet(void *context, virErrorPtr error)
{
}

static const char *last_words(void)
{
	const char *words = virGetLastErrorMessage();

	return words ? words : "no reason is known";
}

static int fail(struct ptvm_error *error, const char *what)
{
	return ptvm_fail(error, PTVM_SYSTEM, "%s: %s", what, last_words());
}

int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error)
{
	const char *preset = getenv("LIBVIRT_DEFAULT_URI");
	struct domain_link *link;

	if (!uri)
		uri = preset && preset[0] ? preset : "qemu:///system";
	virSetErrorFunc(NULL, keep_quiet);
	link = calloc(1, sizeof(*link));
	if (!link)
		return -PTVM_NO_MEMORY;
	link->connection = is_read_only ? virConnectOpenReadOnly(uri) : virConnectOpen(uri);
	if (!link->connection) {
		domain_link_close(link);
		return fail(error, uri);
	}
	*ret = link;
	return 0;
}

void domain_link_close(struct domain_link *link)
{
	if (link && link->connection)
		(void)virConnectClose(link->connection);
	free(link);
}

int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error)
{
	_cleanup_free_ char *uri = virConnectGetURI(link->connection);
	int running = virConnectNumOfDomains(link->connection);
	unsigned long version = 0;

	if (!uri || running < 0 || virConnectGetLibVersion(link->connection, &version) < 0)
		return fail(error, uri ? uri : "libvirt");
	(void)snprintf(text, size, "%s, version %lu.%lu.%lu, %d running", uri,
		       version / VERSION_MAJOR, version / VERSION_MINOR % VERSION_MINOR,
		       version % VERSION_MINOR, running);
	return 0;
}

static virDomainPtr look_up(virConnectPtr connection, const char *name)
{
	virDomainPtr domain = virDomainLookupByName(connection, name);
	char *end;
	long id;

	if (!domain)
		domain = virDomainLookupByUUIDString(connection, name);
	id = strtol(name, &end, 10);
	if (!domain && end > name && !*end && id >= 0 && id <= INT32_MAX)
		domain = virDomainLookupByID(connection, (int)id);
	return domain;
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
	_cleanup_domain_ virDomainPtr domain = look_up(link->connection, name);
	int state, reason;

	memset(ret, 0, sizeof(*ret));
	if (!domain)
		return ptvm_fail(error, PTVM_NOT_FOUND, "libvirt knows no domain '%s'", name);
	if (virDomainGetState(domain, &state, &reason, 0) < 0 ||
	    virDomainGetUUIDString(domain, ret->uuid) < 0)
		return fail(error, name);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", virDomainGetName(domain));
	ret->id = virDomainIsActive(domain) == 1 ? (int)virDomainGetID(domain) : -1;
	ret->is_running = state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED;
	ret->state = state_text(state);
	return 0;
}

int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error)
{
	_cleanup_domain_ virDomainPtr domain = virDomainLookupByUUIDString(link->connection, uuid);
	char *reply = NULL;

	if (domain)
		reply = virDomainQemuAgentCommand(domain, command, AGENT_SECONDS, 0);
	if (!reply)
		return fail(error, "guest agent");
	*ret_reply = reply;
	return 0;
}
