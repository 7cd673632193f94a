#include "guest/channel_agent.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/base/cleanup.h"
#include "guest/agent_reply.h"

struct channel_agent {
	struct channel channel;
	struct agent_line line;
	int64_t handle, position;
};

__attribute__((format(printf, 4, 5))) static int ask(struct channel_agent *agent, char **ret_reply,
						     struct ptvm_error *error, const char *format,
						     ...)
{
	char command[CHANNEL_PATH_BYTES + 200];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return agent->line.ask(agent->line.context, command, ret_reply, error);
}

static int agent_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	struct channel_agent *agent = (struct channel_agent *)channel;
	_cleanup_free_ char *reply = NULL;
	int r;

	agent->position = 0;
	r = ask(agent, &reply, error,
		"{\"execute\":\"guest-file-open\",\"arguments\":{\"path\":\"%s\",\"mode\":\"r\"}}",
		path);
	return r ? r : agent_handle_read(reply, &agent->handle, error);
}

static int seek(struct channel_agent *agent, int64_t offset, struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	int64_t position;
	int r;

	r = ask(agent, &reply, error,
		"{\"execute\":\"guest-file-seek\","
		"\"arguments\":{\"handle\":%" PRId64 ",\"offset\":%" PRId64 ",\"whence\":0}}",
		agent->handle, offset);
	if (!r)
		r = agent_position_read(reply, &position, error);
	if (r)
		return r;
	if (position != offset)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: the guest agent cannot go to %" PRId64,
				 agent->channel.path, offset);
	agent->position = offset;
	return 0;
}

static int agent_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		      struct ptvm_error *error)
{
	struct channel_agent *agent = (struct channel_agent *)channel;
	_cleanup_free_ char *reply = NULL;
	int r = 0;

	if (offset > INT64_MAX - size)
		return 0;
	if (agent->position != (int64_t)offset)
		r = seek(agent, (int64_t)offset, error);
	if (!r)
		r = ask(agent, &reply, error,
			"{\"execute\":\"guest-file-read\","
			"\"arguments\":{\"handle\":%" PRId64 ",\"count\":%zu}}",
			agent->handle, size);
	if (!r)
		r = agent_data_read(reply, data, size, error);
	if (r > 0)
		agent->position += r;
	return r;
}

static void agent_close(struct channel *channel)
{
	_cleanup_free_ char *reply = NULL;
	struct channel_agent *agent = (struct channel_agent *)channel;

	(void)ask(agent, &reply, NULL,
		  "{\"execute\":\"guest-file-close\",\"arguments\":{\"handle\":%" PRId64 "}}",
		  agent->handle);
}

static void agent_free(struct channel *channel)
{
	free(channel);
}

static const struct channel_way agent_way = {
	.name = "agent",
	.open = agent_open,
	.read = agent_read,
	.close = agent_close,
	.free = agent_free,
};

int channel_agent_new(const struct agent_line *line, struct channel **ret)
{
	struct channel_agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return -PTVM_NO_MEMORY;
	channel_init(&agent->channel, &agent_way);
	agent->line = *line;
	*ret = &agent->channel;
	return 0;
}
