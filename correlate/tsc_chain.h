/* From one TSC packet whose time is known to the next: what a TSC must be, by the crystal's count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "correlate/tsc_walk.h"

/** Zero-initialise before use. */
struct tsc_chain {
	bool known;
	bool of_guest; /* `tsc` is the time of the guest `vmcs`, otherwise the host's */
	bool lost;     /* crystal ticks may have been lost since the anchor */
	uint64_t vmcs;
	uint64_t tsc;  /* at an edge of the crystal */
	int64_t count; /* of the crystal there */
};

/** Go on to the next event: notes a loss, and forgets all at a break. */
void tsc_chain_step(struct tsc_chain *chain, const struct tsc_event *event);

/** What the TSC that the chain follows was at this event; false where that is not known. */
bool tsc_chain_expect(const struct tsc_chain *chain, const struct tsc_event *event,
		      const struct pt_config *config, uint64_t *ret);

/** Anchor the chain at an event that shows the host's time, if it has a TMA. */
void tsc_chain_to_host(struct tsc_chain *chain, const struct tsc_event *event, uint64_t tsc);

/** Anchor the chain at an event that shows its guest's time, if it has a TMA. */
void tsc_chain_to_guest(struct tsc_chain *chain, const struct tsc_event *event);

/** The 64-bit number nearest to `near` whose low 56 bits are those of `tsc`; 0 is no time. */
uint64_t tsc_near(uint64_t tsc, uint64_t near);

/** A time near an event of the host's: as expected, or when the recorder read the buffer. */
uint64_t tsc_chain_about(const struct tsc_chain *chain, const struct tsc_event *event,
			 const struct aux_queue *queue, const struct pt_config *config);
