/* The guest agent of a domain: what it lets us do, and files read through it. */
#pragma once

#include <stddef.h>

#include "decode/base/error.h"
#include "guest/agent_reply.h"

struct channel;
struct domain_link;

/** Whom to ask. */
struct guest_agent {
	struct domain_link *link;
	const char *uuid;
};

/**
 * Ask the agent which commands it allows.
 * Returns 0, or -PTVM_SYSTEM (no answer) or -PTVM_BAD_INPUT (one without sense).
 */
int guest_agent_info(struct domain_link *link, const char *uuid, struct agent_info *ret,
		     struct ptvm_error *error);

/**
 * A channel to the guest's files: by commands that read files or, where only these are refused, by
 * those that run programs.
 *
 * @agent  must live as long as the channel
 * @ret    release with channel_free()
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int guest_agent_channel(struct guest_agent *agent, struct channel **ret);

/**
 * Read the beginning of a file of the guest: `size` - 1 bytes at most, and a NUL.
 * Returns the number of bytes, or an error as channel_read_text().
 */
int guest_agent_read(struct domain_link *link, const char *uuid, const char *path, char *text,
		     size_t size, struct ptvm_error *error);
