/* A call that may never return, as of a library that waits for a server which hangs: time gets us
 * out of it, and so does Ctrl-C where signals are held back (interrupt.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * Call `run` with `context` in a thread of its own, which is left behind if it takes too long.
 *
 * @drop         releases the context when a call that was left behind returns at last
 * @patience_ms  how long it may take once a signal waits that is held back
 * @limit_ms     how long it may take in any case
 *
 * Returns true; or false: it was left behind, and the context is no longer ours. The signal, if one
 * waits, still does.
 */
bool breakable_call(void (*run)(void *context), void (*drop)(void *context), void *context,
		    int64_t patience_ms, int64_t limit_ms);
