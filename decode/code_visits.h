/* What the packets of all queues say about code of a kernel that was replaced since it was copied:
 * each time that they tell of an address in it, they agree with what it was before, with what it
 * became, or with neither. From that follows when it was replaced. The same for all segments. */
#pragma once

#include "decode/patch_inference.h"

enum { CODE_VISITS_RANGES = 64 }; /* or modules; of others nothing is found out */

/**
 * Find out since when the code that a later copy has is in its place (machine_replaced()), and have
 * it there from then on. To be called before anybody else looks at code. What cannot be decided, or
 * when memory is out, stays as it was copied first.
 *
 * @sources  the queues, and where their flows find code
 */
void code_visits_settle(const struct patch_inference *sources);

/**
 * Find out until when modules were what was copied, where no later copy has what came to their
 * place: by visits to addresses that are none to go to.
 *
 * @ret  those that were visited, with the time from which on they are not to be believed
 *
 * Returns how many there are.
 */
size_t code_visits_modules(const struct patch_inference *sources,
			   struct replaced_module ret[CODE_VISITS_RANGES]);
