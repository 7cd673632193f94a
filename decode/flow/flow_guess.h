/* What comes of it if a return went to some place: a copy of the flow goes on from there, until the
 * packets refute that, or tell enough addresses in agreement. Internal to the flow. */
#pragma once

#include "decode/flow/flow_step.h"
#include "decode/flow/return_places.h"

/** How packets and the code at a place go together, from worst to best. */
enum guess_verdict {
	GUESS_REFUTED,
	GUESS_OPEN, /* there is no telling */
	GUESS_AGREES,
};

struct guess_outcome {
	enum guess_verdict verdict;
	uint32_t told;    /* addresses that packets told up to there, */
	uint32_t returns; /* and compressed returns to calls that are known */
};

/** All that is tried about one return. */
struct flow_guess {
	struct flow_batch batch;    /* nobody reads it */
	unsigned steps, given;      /* left, and at first; each is about a packet */
	uint64_t *left;             /* of the flow's, from which they are taken at the end */
	struct guess_outcome begin; /* what the flow had where it began */
};

/** How much a flow may try in its segment. */
uint64_t flow_guess_steps(const struct pt_segment *segment);

/** Whether a flow may try anything: it is no trial itself, it is of a trace that patches are
 * inferred from, and it has not yet tried as much as it may. */
bool flow_guess_is_allowed(const struct pt_flow *flow);

/** Begin, where that is allowed; `trial` becomes the flow to try things with, and `left` is how
 * much the flow may still try. NULL when memory is out. */
struct flow_guess *flow_guess_new(const struct pt_flow *flow, uint64_t *left,
				  struct pt_flow *trial);

/** Free what flow_guess_new() returned. Returns false if the steps ran out: nothing is known. */
bool flow_guess_end(struct flow_guess *guess);

/** Follow a trial to a verdict, or a return to an unknown call, which is open. */
struct guess_outcome flow_guess_follow(struct flow_guess *guess, struct pt_flow *trial);

/** Try where the return at the end of the trial's block went. Returns what the best place comes to,
 * which is `ret` if no other one is as good; else `ret` has ip 0, and it is the least that any of
 * these comes to. */
struct guess_outcome flow_guess_return(struct flow_guess *guess, const struct pt_flow *trial,
				       struct return_place *ret);
