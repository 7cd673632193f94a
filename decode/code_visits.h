/* What the packets of all queues say about code of a kernel that was replaced since it was copied:
 * each time that they tell of an address in it, they agree with what it was before, with what it
 * became, or with neither. From that follows when it was replaced. The same for all segments. */
#pragma once

#include "decode/patch_inference.h"

/**
 * Find out since when the code that a later copy has is in its place (machine_replaced()), and have
 * it there from then on. To be called before anybody else looks at code. What cannot be decided, or
 * when memory is out, stays as it was copied first.
 *
 * @sources  the queues, and where their flows find code
 */
void code_visits_settle(const struct patch_inference *sources);

/**
 * Find out until when a module (as machine_module() has it) was what was copied, where no later
 * copy has what came to its place: by visits to addresses in it that are none to go to.
 *
 * Returns the time in ns of perf's clock from which on it is not to be believed; UINT64_MAX: it is.
 */
uint64_t code_visits_until(const struct patch_inference *sources, struct machine *machine,
			   const char *module);
