/* Files of a guest, read through its QEMU guest agent. */
#pragma once

#include "guest/channel.h"

/** Who carries commands to the agent. */
struct agent_line {
	/**
	 * Put one question.
	 *
	 * @command  JSON, as {"execute":"guest-info"}
	 * @ret      JSON that the guest made; free() it
	 *
	 * Returns 0 or an error; waits some seconds at most.
	 */
	int (*ask)(void *context, const char *command, char **ret, struct ptvm_error *error);
	void *context;
};

/**
 * Read files with guest-file-open, -seek, -read and -close. Handles are always closed.
 *
 * @line  its context is used until channel_free()
 * @ret   release with channel_free()
 *
 * Returns 0 or -PTVM_NO_MEMORY. The agent is not asked before a file is opened.
 */
int channel_agent_new(const struct agent_line *line, struct channel **ret);
