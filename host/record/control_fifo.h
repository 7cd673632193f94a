/* Commands to a recorder through a FIFO, in perf's words, one a line; each is answered with "ack".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/error.h"

enum control_command {
	CONTROL_NONE, /* no whole line is there */
	CONTROL_ENABLE,
	CONTROL_DISABLE,
	CONTROL_SNAPSHOT,
	CONTROL_PING,
	CONTROL_STOP,
	CONTROL_UNKNOWN,
};

struct control_fifo {
	int control, ack; /* -1: none */
	char line[64];    /* what was read and not taken; for messages, the last line taken */
	size_t used;
	bool is_long; /* a line that is no command, up to its end */
};

/** One that is not open. */
static inline struct control_fifo control_fifo_none(void)
{
	return (struct control_fifo){ .control = -1, .ack = -1 };
}

/**
 * Open what `text` names: fifo:COMMANDS[,ACKS], two FIFOs, or fd:N[,N], two open file descriptors,
 * which are taken over.
 *
 * Returns 0, -PTVM_BAD_USAGE or -PTVM_SYSTEM; control_fifo_close() it in any case.
 */
int control_fifo_open(const char *text, struct control_fifo *ret, struct ptvm_error *error);

/** Take the next command; does not wait. At the end of what it reads from it is closed: poll()
 * would find it ready for ever. */
enum control_command control_fifo_next(struct control_fifo *fifo);

/** Say that a command was carried out. Nobody has to listen. */
void control_fifo_ack(const struct control_fifo *fifo);

/** Accepts control_fifo_none(). */
void control_fifo_close(struct control_fifo *fifo);
