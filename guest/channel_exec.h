/* Files of a guest, read by programs that its QEMU guest agent runs: for agents that may not open
 * files themselves. */
#pragma once

#include "guest/channel.h"

struct agent_line;

enum { CHANNEL_EXEC_SECONDS = 30 /* that a program may run */ };

/**
 * Read files with dd, by guest-exec and -status. Nothing is left running or open in the guest.
 *
 * @line  its context is used until channel_free()
 * @ret   release with channel_free()
 *
 * Returns 0 or -PTVM_NO_MEMORY. The agent is not asked before a file is read.
 */
int channel_exec_new(const struct agent_line *line, struct channel **ret);
