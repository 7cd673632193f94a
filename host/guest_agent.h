/* What the guest agent of a domain lets us do. */
#pragma once

#include <stddef.h>

#include "decode/base/error.h"
#include "guest/agent_reply.h"

struct domain_link;

/**
 * Ask the agent which commands it allows.
 * Returns 0, or -PTVM_SYSTEM (no answer) or -PTVM_BAD_INPUT (one without sense).
 */
int guest_agent_info(struct domain_link *link, const char *uuid, struct agent_info *ret,
		     struct ptvm_error *error);

/**
 * Read the beginning of a file of the guest: `size` - 1 bytes at most, and a NUL.
 *
 * @path  needs no quoting in JSON
 *
 * Returns the number of bytes, or an error as above.
 */
int guest_agent_read(struct domain_link *link, const char *uuid, const char *path, char *text,
		     size_t size, struct ptvm_error *error);
