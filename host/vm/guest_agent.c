#include "host/vm/guest_agent.h"

#include "decode/base/cleanup.h"
#include "guest/channel_agent.h"
#include "guest/channel_exec.h"
#include "host/vm/domain.h"

int guest_agent_info(struct domain_link *link, const char *uuid, struct agent_info *ret,
		     struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	int r;

	r = domain_agent_ask(link, uuid, "{\"execute\":\"guest-info\"}", &reply, error);
	return r ? r : agent_info_read(reply, ret, error);
}

static int ask(void *context, const char *command, char **ret, struct ptvm_error *error)
{
	const struct guest_agent *agent = context;

	return domain_agent_ask(agent->link, agent->uuid, command, ret, error);
}

int guest_agent_channel(struct guest_agent *agent, struct channel **ret)
{
	const struct agent_line line = { ask, agent };
	struct agent_info info;

	if (!guest_agent_info(agent->link, agent->uuid, &info, NULL) && !info.can_read_files &&
	    info.can_run)
		return channel_exec_new(&line, ret);
	return channel_agent_new(&line, ret);
}

int guest_agent_read(struct domain_link *link, const char *uuid, const char *path, char *text,
		     size_t size, struct ptvm_error *error)
{
	struct guest_agent agent = { link, uuid };
	struct channel *channel;
	int r = guest_agent_channel(&agent, &channel);

	if (r)
		return r;
	r = channel_read_text(channel, path, text, size, error);
	channel_free(channel);
	return r;
}
