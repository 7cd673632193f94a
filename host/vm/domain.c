#include "host/vm/domain.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/monotonic.h"
#include "host/vm/breakable_call.h"
#include "host/vm/libvirt_calls.h"

enum {
	AGENT_SECONDS = 5,
	PATIENCE_MS = (AGENT_SECONDS + 1) * MS_PER_S, /* an agent is out of time before */
	LIMIT_MS = 45 * MS_PER_S, /* libvirt lets a question wait 30 s for others to a domain */
	VERSION_MAJOR = 1000000,
	VERSION_MINOR = 1000,
};

struct domain_link {
	struct libvirt_calls vir;
	virConnectPtr connection;
	bool is_stuck; /* in a call that was left behind */
};

/* What is asked of libvirt. It has copies of all that it needs, since libvirtd may hang, and the
 * call be left behind. */
struct call {
	int (*make)(struct call *call);
	struct domain_link *link;
	char *subject; /* URI of libvirt, name or UUID of a domain */
	char *command;
	bool is_read_only;
	uint64_t address;
	size_t size;

	/* The answer. */
	int result;
	char *reply; /* `size` bytes, or a text */
	struct domain domain;
	struct domain_versions versions;
	struct ptvm_error error;
};

static void call_free(struct call *call)
{
	free(call->subject);
	free(call->command);
	free(call->reply);
	free(call);
}

static void call_freep(struct call **call)
{
	if (*call)
		call_free(*call);
}

#define _cleanup_call_ _cleanup_(call_freep)

/* NULL: out of memory. */
static struct call *call_new(struct domain_link *link, int (*make)(struct call *call),
			     const char *subject, const char *command)
{
	_cleanup_call_ struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->link = link;
	call->make = make;
	call->subject = strdup(subject);
	call->command = strdup(command);
	return call->subject && call->command ? take_ptr(call) : NULL;
}

static void run(void *context)
{
	struct call *call = context;

	call->result = call->make(call);
}

static void drop(void *context)
{
	call_free(context);
}

static int no_answer(struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_SYSTEM, "libvirtd does not answer");
}

/* Returns what it did; or -PTVM_SYSTEM: it was left behind, and is no longer in `call`. */
static int make(struct call **call, struct ptvm_error *error)
{
	struct domain_link *link;

	if (!*call)
		return -PTVM_NO_MEMORY;
	link = (*call)->link;
	if (link->is_stuck)
		return no_answer(error);
	if (breakable_call(run, drop, *call, PATIENCE_MS, LIMIT_MS))
		return ptvm_fail_as(error, &(*call)->error, (*call)->result);
	*call = NULL;
	link->is_stuck = true;
	return no_answer(error);
}

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

static int connect(struct call *call)
{
	struct domain_link *link = call->link;
	int r = libvirt_load(&link->vir, &call->error);

	if (r)
		return r;
	link->vir.virSetErrorFunc(NULL, keep_quiet);
	link->connection = call->is_read_only ? link->vir.virConnectOpenReadOnly(call->subject)
					      : link->vir.virConnectOpen(call->subject);
	return link->connection ? 0 : fail(link, &call->error, call->subject);
}

int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error)
{
	const char *preset = getenv("LIBVIRT_DEFAULT_URI");
	struct domain_link *link = calloc(1, sizeof(*link));
	_cleanup_call_ struct call *call = NULL;
	int r;

	if (!link)
		return -PTVM_NO_MEMORY;
	if (!uri)
		uri = preset && preset[0] ? preset : "qemu:///system";
	call = call_new(link, connect, uri, "");
	if (call)
		call->is_read_only = is_read_only;
	r = make(&call, error);
	if (r)
		domain_link_close(link);
	else
		*ret = link;
	return r;
}

static int disconnect(struct call *call)
{
	(void)call->link->vir.virConnectClose(call->link->connection);
	return 0;
}

/* One that is stuck is still in use, and stays as it is. */
void domain_link_close(struct domain_link *link)
{
	_cleanup_call_ struct call *call = NULL;

	if (!link || link->is_stuck)
		return;
	if (link->connection) {
		call = call_new(link, disconnect, "", "");
		if (make(&call, NULL))
			return;
	}
	libvirt_unload(&link->vir);
	free(link);
}

static void print_version(unsigned long version, char *text, size_t size)
{
	(void)snprintf(text, size, "%lu.%lu.%lu", version / VERSION_MAJOR,
		       version / VERSION_MINOR % VERSION_MINOR, version % VERSION_MINOR);
}

static int ask_versions(struct call *call)
{
	const struct libvirt_calls *vir = &call->link->vir;
	const virConnectPtr connection = call->link->connection;
	struct domain_versions *ret = &call->versions;
	unsigned long version;

	if (!vir->virConnectGetLibVersion(connection, &version))
		print_version(version, ret->libvirt, sizeof(ret->libvirt));
	if (!vir->virConnectGetVersion(connection, &version) && version)
		print_version(version, ret->vmm, sizeof(ret->vmm));
	return 0;
}

void domain_link_versions(struct domain_link *link, struct domain_versions *ret)
{
	_cleanup_call_ struct call *call = call_new(link, ask_versions, "", "");
	int r = make(&call, NULL);

	*ret = r ? (struct domain_versions){ "", "" } : call->versions;
}

static int describe(struct call *call)
{
	const struct domain_link *link = call->link;
	_cleanup_free_ char *uri = link->vir.virConnectGetURI(link->connection);
	const int running = link->vir.virConnectNumOfDomains(link->connection);

	(void)ask_versions(call);
	if (!uri || running < 0 || !call->versions.libvirt[0])
		return fail(link, &call->error, uri ? uri : "libvirt");
	if (asprintf(&call->reply, "%s, version %s, %d running", uri, call->versions.libvirt,
		     running) >= 0)
		return 0;
	call->reply = NULL;
	return -PTVM_NO_MEMORY;
}

int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error)
{
	_cleanup_call_ struct call *call = call_new(link, describe, "", "");
	int r = make(&call, error);

	if (!r)
		(void)snprintf(text, size, "%s", call->reply);
	return r;
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

static int find(struct call *call)
{
	const struct libvirt_calls *vir = &call->link->vir;
	_cleanup_looked_up_ struct looked_up found = { vir, look_up(call->link, call->subject) };
	struct domain *ret = &call->domain;
	int state, reason;

	if (!found.domain)
		return ptvm_fail(&call->error, PTVM_NOT_FOUND, "libvirt knows no domain '%s'",
				 call->subject);
	if (vir->virDomainGetState(found.domain, &state, &reason, 0) < 0 ||
	    vir->virDomainGetUUIDString(found.domain, ret->uuid) < 0)
		return fail(call->link, &call->error, call->subject);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", vir->virDomainGetName(found.domain));
	ret->id = vir->virDomainIsActive(found.domain) == 1 ? (int)vir->virDomainGetID(found.domain)
							    : -1;
	ret->is_running = state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED;
	ret->state = state_text(state);
	return 0;
}

int domain_find(struct domain_link *link, const char *name, struct domain *ret,
		struct ptvm_error *error)
{
	_cleanup_call_ struct call *call = call_new(link, find, name, "");
	int r = make(&call, error);

	*ret = r ? (struct domain){ .id = -1 } : call->domain;
	return r;
}

static int ask_agent(struct call *call)
{
	const struct libvirt_calls *vir = &call->link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(call->link, call->subject);

	if (found.domain)
		call->reply = vir->virDomainQemuAgentCommand(found.domain, call->command,
							     AGENT_SECONDS, 0);
	return call->reply ? 0 : fail(call->link, &call->error, "guest agent");
}

static int ask_monitor(struct call *call)
{
	const struct libvirt_calls *vir = &call->link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(call->link, call->subject);
	int r = -1;

	if (found.domain)
		r = vir->virDomainQemuMonitorCommand(found.domain, call->command, &call->reply,
						     VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP);
	return r < 0 || !call->reply ? fail(call->link, &call->error, "QEMU's monitor") : 0;
}

/* A question that is answered by a text. */
static int ask(struct call *question, char **ret_reply, struct ptvm_error *error)
{
	_cleanup_call_ struct call *call = question;
	int r = make(&call, error);

	if (!r)
		*ret_reply = take_ptr(call->reply);
	return r;
}

int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error)
{
	return ask(call_new(link, ask_agent, uuid, command), ret_reply, error);
}

int domain_monitor_ask(struct domain_link *link, const char *uuid, const char *command,
		       char **ret_reply, struct ptvm_error *error)
{
	return ask(call_new(link, ask_monitor, uuid, command), ret_reply, error);
}

static int read_memory(struct call *call)
{
	const struct libvirt_calls *vir = &call->link->vir;
	_cleanup_looked_up_ struct looked_up found = look_up_uuid(call->link, call->subject);

	call->reply = malloc(call->size);
	if (!call->reply)
		return -PTVM_NO_MEMORY;
	if (!found.domain || vir->virDomainMemoryPeek(found.domain, call->address, call->size,
						      call->reply, VIR_MEMORY_PHYSICAL) < 0)
		return fail(call->link, &call->error, "guest memory");
	return 0;
}

int domain_memory_read(struct domain_link *link, const char *uuid, uint64_t address, void *data,
		       size_t size, struct ptvm_error *error)
{
	_cleanup_call_ struct call *call = call_new(link, read_memory, uuid, "");
	int r;

	if (call) {
		call->address = address;
		call->size = size;
	}
	r = make(&call, error);
	if (!r)
		memcpy(data, call->reply, size);
	return r;
}
