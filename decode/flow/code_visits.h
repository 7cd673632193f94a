/* What the packets of all queues say about code of a kernel that was replaced since it was copied:
 * each time that they tell of an address in it, they agree with what it was before, with what it
 * became, or with neither. From that follows when it was replaced. The same for all segments. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "decode/flow/trace_sources.h"

/** When code was replaced that a later copy has (machine_replaced()). */
struct code_visits {
	const struct trace_sources *sources;
	pthread_mutex_t lock; /* recursive: finding out means asking for code */
	bool is_begun;
	atomic_bool is_done;
};

/**
 * Be ready to find out since when the code that a later copy has is in its place, and to have it
 * there from then on. That goes through all queues, so it is done when somebody first asks for such
 * code. What cannot be decided, or when memory is out, stays as it was copied first.
 *
 * @sources  the queues, and where their flows find code; borrowed
 */
void code_visits_init(struct code_visits *visits, const struct trace_sources *sources);

/** Not to be asked any more; accepts zeroes. */
void code_visits_free(struct code_visits *visits);

struct replaced_module_list;

/**
 * Find out until when modules were what was copied, where no later copy has what came to their
 * place: by visits to addresses that are none to go to.
 *
 * @ret  those that were visited are added to the empty list; when memory is out all are believed
 */
void code_visits_modules(const struct trace_sources *sources, struct replaced_module_list *ret);
