#include "host/vm/guest_way.h"

#include <stdio.h>
#include <string.h>

#include "guest/channel.h"
#include "guest/channel_memory.h"
#include "guest/channel_mount.h"
#include "guest/channel_ssh.h"
#include "host/machine/pid_list.h"
#include "host/vm/vm_search.h"

static bool is_agent(const char *via)
{
	return !strcmp(via, "agent");
}

static bool is_memory(const char *via)
{
	return !strcmp(via, "memory");
}

/* What follows `name`, which ends with a `=`; NULL where it is another way. */
static const char *argument(const char *via, const char *name)
{
	return strncmp(via, name, strlen(name)) ? NULL : via + strlen(name);
}

static bool is_known(const char *via)
{
	return is_agent(via) || is_memory(via) || argument(via, "ssh=") || argument(via, "mount=");
}

/* Does it go by a domain of libvirt? */
static bool needs_domain(const char *via)
{
	return is_agent(via) || is_memory(via);
}

void guest_way_next(const char **list, char via[GUEST_WAY_BYTES])
{
	size_t length = strcspn(*list, ",");

	(void)snprintf(via, GUEST_WAY_BYTES, "%.*s", length < GUEST_WAY_BYTES ? (int)length : 0,
		       *list);
	*list = (*list)[length] ? *list + length + 1 : NULL;
}

int guest_way_read_pid(void *pid, const char *value, struct ptvm_error *error)
{
	const char *end;
	pid_t number;

	if (!pid_read(value, &end, &number) || *end)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-p takes the number of a process, not '%s'", value);
	*(pid_t *)pid = number;
	return 0;
}

int guest_way_check_name(const char *domain, pid_t pid, struct ptvm_error *error)
{
	if (domain && !*domain)
		return ptvm_fail(error, PTVM_BAD_USAGE, "--domain needs the name of a guest");
	if (pid && domain)
		return ptvm_fail(error, PTVM_BAD_USAGE, "--domain and -p both name the guest");
	return 0;
}

int guest_way_check(const char *list, bool has_domain, struct ptvm_error *error)
{
	char via[GUEST_WAY_BYTES];

	do {
		guest_way_next(&list, via);
		if (!is_known(via))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "--via takes agent, ssh=[USER@]HOST, mount=DIR or memory, "
					 "not '%s'",
					 via);
		if (!has_domain && needs_domain(via))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "which guest? name it with --domain or -p, or a way to it "
					 "with --via");
	} while (list);
	return 0;
}

static int find_domain(const struct guest_target *target, struct guest_way *way,
		       struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	int r;

	if (!target->domain[0])
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "the process has no -uuid by which libvirt could know it; "
				 "--via memory, ssh=HOST or mount=DIR need no libvirt");
	r = domain_link_open(target->uri, false, &way->link, &why);
	if (r)
		return why.code ? ptvm_fail(error, why.code, "%s; " DOMAIN_LINK_REMEDY, why.message)
				: r;
	r = domain_find(way->link, target->domain, &way->domain, error);
	if (!r && !way->domain.is_running)
		r = ptvm_fail(error, PTVM_NOT_FOUND, "domain '%s' is %s", way->domain.name,
			      way->domain.state);
	return r;
}

static int open_agent(const struct guest_target *target, struct guest_way *way,
		      struct ptvm_error *error)
{
	int r = find_domain(target, way, error);

	if (r)
		return r;
	way->agent = (struct guest_agent){ way->link, way->domain.uuid };
	return guest_agent_channel(&way->agent, &way->channel);
}

static int open_kernel(struct guest_way *way, struct ptvm_error *error)
{
	const struct guest_memory reader = vm_memory_reader(&way->memory);

	return channel_memory_new(&reader, way->memory.page_roots, way->memory.root_count,
				  &way->channel, error);
}

static int ask_monitor(const struct roots *roots, const struct guest_target *target,
		       struct guest_way *way, struct ptvm_error *error)
{
	int r = find_domain(target, way, error);

	if (r)
		return r;
	way->has_asked_monitor = true;
	r = vm_memory_open(roots, way->link, way->domain.uuid, &way->memory, error);
	return r ? r : open_kernel(way, error);
}

static int open_memory(const struct guest_target *target, struct guest_way *way,
		       struct ptvm_error *error)
{
	const struct roots roots = roots_here();
	struct ptvm_error why = { 0 };
	int r = ask_monitor(&roots, target, way, &why);
	const pid_t pid = target->pid ? target->pid : way->memory.pid;

	if (!r || r == -PTVM_NO_MEMORY)
		return r;
	if (!pid)
		return ptvm_fail_as(error, &why, r);
	vm_memory_close(&way->memory);
	r = vm_search_open(&roots, pid, &way->memory, error);
	return r ? r : open_kernel(way, error);
}

int guest_way_open(const char *via, const struct guest_target *target, struct guest_way *ret,
		   struct ptvm_error *error)
{
	*ret = (struct guest_way){ .memory.file = -1 };
	if (argument(via, "ssh="))
		return channel_ssh_new(argument(via, "ssh="), &ret->channel, error);
	if (argument(via, "mount="))
		return channel_mount_new(argument(via, "mount="), &ret->channel, error);
	return is_agent(via) ? open_agent(target, ret, error) : open_memory(target, ret, error);
}

void guest_way_close(struct guest_way *way)
{
	channel_free(way->channel);
	vm_memory_close(&way->memory);
	domain_link_close(way->link);
}
