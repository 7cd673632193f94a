#include "host/guest_agent.h"

#include <inttypes.h>
#include <stdio.h>

#include "decode/base/cleanup.h"
#include "host/domain.h"

int guest_agent_info(struct domain_link *link, const char *uuid, struct agent_info *ret,
		     struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	int r;

	r = domain_agent_ask(link, uuid, "{\"execute\":\"guest-info\"}", &reply, error);
	return r ? r : agent_info_read(reply, ret, error);
}

static int open_file(struct domain_link *link, const char *uuid, const char *path,
		     int64_t *ret_handle, struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	char command[512];
	int r;

	(void)snprintf(command, sizeof(command),
		       "{\"execute\":\"guest-file-open\","
		       "\"arguments\":{\"path\":\"%s\",\"mode\":\"r\"}}",
		       path);
	r = domain_agent_ask(link, uuid, command, &reply, error);
	return r ? r : agent_handle_read(reply, ret_handle, error);
}

static int read_handle(struct domain_link *link, const char *uuid, int64_t handle, char *text,
		       size_t size, struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	char command[160];
	int r;

	(void)snprintf(command, sizeof(command),
		       "{\"execute\":\"guest-file-read\","
		       "\"arguments\":{\"handle\":%" PRId64 ",\"count\":%zu}}",
		       handle, size - 1);
	r = domain_agent_ask(link, uuid, command, &reply, error);
	return r ? r : agent_bytes_read(reply, text, size, error);
}

static void close_handle(struct domain_link *link, const char *uuid, int64_t handle)
{
	_cleanup_free_ char *reply = NULL;
	char command[160];

	(void)snprintf(command, sizeof(command),
		       "{\"execute\":\"guest-file-close\",\"arguments\":{\"handle\":%" PRId64 "}}",
		       handle);
	(void)domain_agent_ask(link, uuid, command, &reply, NULL);
}

int guest_agent_read(struct domain_link *link, const char *uuid, const char *path, char *text,
		     size_t size, struct ptvm_error *error)
{
	int64_t handle;
	int r;

	r = open_file(link, uuid, path, &handle, error);
	if (r)
		return r;
	r = read_handle(link, uuid, handle, text, size, error);
	close_handle(link, uuid, handle);
	return r;
}
