/* Whoever waits for long work: is told how far it is, and says whether to go on. */
#pragma once

#include <stdbool.h>

struct watch {
	/** `done`: from 0 to 1, or less than 0 where that is not known. Returns false to stop. */
	bool (*go_on)(void *context, double done);
	void *context;
};

/** Ask, in work that does not know how far it is. */
static inline bool watch_go_on(const struct watch *watch)
{
	return watch->go_on(watch->context, -1);
}
