/* Stands for domain.c where ptvm is built without libvirt. */
#include "host/vm/domain.h"

static int refuse(struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_SYSTEM, "this ptvm was built without libvirt");
}

int domain_link_open(const char *uri, bool is_read_only, struct domain_link **ret,
		     struct ptvm_error *error)
{
	return refuse(error);
}

void domain_link_close(struct domain_link *link)
{
}

int domain_link_text(struct domain_link *link, char *text, size_t size, struct ptvm_error *error)
{
	return refuse(error);
}

void domain_link_versions(struct domain_link *link, struct domain_versions *ret)
{
	*ret = (struct domain_versions){ "", "" };
}

int domain_find(struct domain_link *link, const char *name, struct domain *ret,
		struct ptvm_error *error)
{
	return refuse(error);
}

int domain_agent_ask(struct domain_link *link, const char *uuid, const char *command,
		     char **ret_reply, struct ptvm_error *error)
{
	return refuse(error);
}

int domain_monitor_ask(struct domain_link *link, const char *uuid, const char *command,
		       char **ret_reply, struct ptvm_error *error)
{
	return refuse(error);
}

int domain_memory_read(struct domain_link *link, const char *uuid, uint64_t address, void *data,
		       size_t size, struct ptvm_error *error)
{
	return refuse(error);
}
