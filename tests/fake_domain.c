#include "tests/fake_domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/guest_memory.h"
#include "tests/fake_guest.h"

struct fake_libvirt fake_libvirt;

struct domain_link {
	bool is_read_only;
};

int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error)
{
	(void)pthread_sigmask(SIG_SETMASK, NULL, &fake_libvirt.held);
	fake_libvirt.uri = uri;
	fake_libvirt.is_read_only = is_read_only;
	if (fake_libvirt.is_down)
		return ptvm_fail(error, PTVM_SYSTEM, "no libvirtd");
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->is_read_only = is_read_only;
	__atomic_add_fetch(&fake_libvirt.opened, 1, __ATOMIC_ACQ_REL);
	return 0;
}

void domain_link_close(struct domain_link *link)
{
	if (link)
		__atomic_add_fetch(&fake_libvirt.closed, 1, __ATOMIC_ACQ_REL);
	free(link);
}

int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error)
{
	(void)snprintf(text, size, "fake, version 9.0.0, 1 running");
	return 0;
}

void domain_link_versions(struct domain_link *link, struct domain_versions *ret)
{
	*ret = (struct domain_versions){ "9.0.0", "7.2.0" };
}

static bool is_known(const char *name)
{
	const struct domain *domain = &fake_libvirt.domain;

	return name[0] && (!strcmp(name, domain->name) || !strcmp(name, domain->uuid));
}

int domain_find(struct domain_link *link, const char *name, struct domain *ret,
		struct ptvm_error *error)
{
	while (fake_libvirt.hold && sem_wait(fake_libvirt.hold))
		;
	if (!is_known(name))
		return ptvm_fail(error, PTVM_NOT_FOUND, "libvirt knows no domain '%s'", name);
	*ret = fake_libvirt.domain;
	return 0;
}

/* Of the one that is known, by those who may ask. */
static void check_asker(const struct domain_link *link, const char *uuid)
{
	assert_false(link->is_read_only);
	assert_string_equal(uuid, fake_libvirt.domain.uuid);
}

static int answer(const char *reply, char **ret, const char *who, struct ptvm_error *error)
{
	if (!reply)
		return ptvm_fail(error, PTVM_SYSTEM, "%s: no answer", who);
	*ret = strdup(reply);
	assert_non_null(*ret);
	return 0;
}

int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error)
{
	check_asker(link, uuid);
	if (strcmp(command, "{\"execute\":\"guest-info\"}") && fake_libvirt.agent)
		return fake_agent_ask(fake_libvirt.agent, command, ret_reply, error);
	return answer(fake_libvirt.agent_info, ret_reply, "guest agent", error);
}

int domain_monitor_ask(struct domain_link *link, const char *uuid, const char *command,
		       char **ret_reply, struct ptvm_error *error)
{
	check_asker(link, uuid);
	return answer(!strcmp(command, "info registers -a") ? fake_libvirt.registers
		      : !strncmp(command, "gpa2hva ", 8)    ? fake_libvirt.address
							    : fake_libvirt.memory_tree,
		      ret_reply, "QEMU's monitor", error);
}

int domain_memory_read(struct domain_link *link, const char *uuid, uint64_t address, void *data,
		       size_t size, struct ptvm_error *error)
{
	check_asker(link, uuid);
	assert_non_null(fake_libvirt.memory);
	return fake_libvirt.memory->read(fake_libvirt.memory->context, address, data, size, error);
}
