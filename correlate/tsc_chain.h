/* From one TSC packet of the host, or of a guest, to the next: what its TSC must be, by the
 * crystal's count. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "correlate/tsc_walk.h"

/** Zero-initialise before use. */
struct tsc_chain {
	bool known;
	bool lost;     /* crystal ticks may have been lost since the anchor */
	uint64_t vmcs; /* at the anchor */
	uint64_t tsc;  /* there, at an edge of the crystal */
	int64_t count; /* of the crystal there */
};

/** Go on to the next event: notes a loss, and forgets all at a break. */
void tsc_chain_step(struct tsc_chain *chain, const struct tsc_event *event);

/** What the TSC that the chain follows was at this event; false where that is not known. */
bool tsc_chain_expect(const struct tsc_chain *chain, const struct tsc_event *event,
		      const struct pt_config *config, uint64_t *ret);

/** Anchor the chain at an event where its TSC is `tsc`, if it has a TMA. */
void tsc_chain_anchor(struct tsc_chain *chain, const struct tsc_event *event, uint64_t tsc);

/** The 64-bit number nearest to `near` whose low 56 bits are those of `tsc`; 0 is no time. */
uint64_t tsc_near(uint64_t tsc, uint64_t near);

/** The host's time near an event: as its chain expects, or when the recorder read the buffer. */
uint64_t tsc_chain_about(const struct tsc_chain *chain, const struct tsc_event *event,
			 const struct aux_queue *queue, const struct pt_config *config);
