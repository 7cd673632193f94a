/* Holds back Ctrl-C, and the other signals that end a program, until it is safe to end: they stay
 * pending, and can be polled. */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct interrupt {
	sigset_t before; /* the mask to go back to */
};

/** Which they are: SIGINT, SIGTERM, and SIGHUP unless who started us has it ignored, as nohup(1)
 * does. */
sigset_t interrupt_signals(void);

/** Hold them back, in this thread and those that it starts. */
void interrupt_hold(struct interrupt *interrupt);

/** Whether one of them waits. */
bool interrupt_waits(void);

/** Take one that waits; false where none does. */
bool interrupt_take(void);

/** Hold back no longer: one that waits ends the program here. */
void interrupt_release(const struct interrupt *interrupt);
