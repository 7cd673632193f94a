/* A call that may never return, as of a library that waits for a server which hangs: Ctrl-C gets us
 * out of it also where signals are held back (interrupt.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * Call `run` with `context`: where signals are held back in a thread of its own, which is left
 * behind if one of them waits.
 *
 * @drop         releases the context when a call that was left behind returns at last
 * @patience_ms  how long a signal waits for the call to return, before it is left behind
 *
 * Returns true; or false: it was left behind, and the context is no longer ours. The signal still
 * waits.
 */
bool breakable_call(void (*run)(void *context), void (*drop)(void *context), void *context,
		    int64_t patience_ms);
