/* Holds back Ctrl-C, and the other signals that end a program, until it is safe to end: they stay
 * pending, and can be polled. */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct interrupt {
	sigset_t before; /* the mask to go back to */
};

/** Hold back SIGINT, SIGTERM and SIGHUP, in this thread and those that it starts. */
void interrupt_hold(struct interrupt *interrupt);

/** Whether one of them waits. */
bool interrupt_waits(void);

/** Hold back no longer: one that waits ends the program here. */
void interrupt_release(const struct interrupt *interrupt);
