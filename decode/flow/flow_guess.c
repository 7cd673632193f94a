#include "decode/flow/flow_guess.h"

#include <stdlib.h>

#include "decode/flow/flow_mark.h"
#include "decode/flow/flow_packet.h"

enum {
	DEPTH = 12,              /* further returns to unknown calls on the way */
	TOLD = 5,                /* addresses that packets must tell in agreement, or */
	RETURNS = 40,            /* returns; each of them is one of two ways */
	STEPS = 8192,            /* for one return, */
	SEGMENT_STEPS = 1 << 17, /* for all of a segment, and for each of its bytes: */
	BYTE_STEPS = 2,
};

uint64_t flow_guess_steps(const struct pt_segment *segment)
{
	return SEGMENT_STEPS + BYTE_STEPS * (segment->to - segment->from);
}

bool flow_guess_is_allowed(const struct pt_flow *flow)
{
	return !flow->trial && flow->where.inference && flow->return_steps;
}

static struct guess_outcome outcome_at(const struct pt_flow *flow)
{
	return (struct guess_outcome){ .told = flow->addresses, .returns = flow->returns_met };
}

/* How far a trial has come. */
static struct guess_outcome outcome_of(const struct flow_guess *guess, const struct pt_flow *trial)
{
	struct guess_outcome ret = outcome_at(trial);

	ret.verdict = GUESS_OPEN;
	ret.told -= guess->begin.told;
	ret.returns -= guess->begin.returns;
	return ret;
}

struct flow_guess *flow_guess_new(const struct pt_flow *flow, uint64_t *left, struct pt_flow *trial)
{
	struct flow_guess *guess = malloc(sizeof(*guess));

	if (!guess)
		return NULL;
	guess->batch.room = FLOW_BATCH;
	guess->batch.count = guess->batch.context_count = 0;
	guess->left = left;
	guess->steps = *left < STEPS ? (unsigned)*left : STEPS;
	guess->given = guess->steps;
	guess->begin = outcome_at(flow);
	flow_copy(trial, flow);
	trial->trial = FLOW_TRIES_RETURN;
	trial->gaps_only = true;
	trial->disagrees = false;
	trial->where.log = NULL;
	trial->where.sites = NULL;
	return guess;
}

bool flow_guess_end(struct flow_guess *guess)
{
	bool is_over = guess->steps;

	*guess->left -= guess->given - guess->steps;
	free(guess);
	return is_over;
}

struct guess_outcome flow_guess_follow(struct flow_guess *guess, struct pt_flow *trial)
{
	struct flow_run run = { trial, &guess->batch };
	const uint32_t gaps = trial->gaps;

	while (guess->steps) {
		struct guess_outcome outcome = outcome_of(guess, trial);
		int r;

		if (outcome.told >= TOLD || outcome.returns >= RETURNS) {
			outcome.verdict = GUESS_AGREES;
			return outcome;
		}
		guess->steps--;
		guess->batch.count = guess->batch.context_count = 0;
		r = flow_next(&run);
		outcome = outcome_of(guess, trial);
		if (trial->disagrees)
			outcome.verdict = GUESS_REFUTED;
		if (trial->disagrees || r || trial->gaps != gaps || trial->state == FLOW_AT_RETURN)
			return outcome;
	}
	return (struct guess_outcome){ .verdict = GUESS_OPEN };
}

static struct guess_outcome try_places(struct flow_guess *guess, const struct pt_flow *at,
				       unsigned depth, struct return_place *ret);

/* Where further returns go to no known place, that is because not all are known. */
static struct guess_outcome try_place(struct flow_guess *guess, const struct pt_flow *at,
				      const struct return_place *place, unsigned depth)
{
	struct guess_outcome outcome, deeper;
	struct return_place ignored;
	struct pt_flow flow;

	flow_copy(&flow, at);
	return_place_enter(place, &flow);
	outcome = flow_guess_follow(guess, &flow);
	if (flow.state != FLOW_AT_RETURN || !depth)
		return outcome;
	deeper = try_places(guess, &flow, depth - 1, &ignored);
	return deeper.verdict == GUESS_REFUTED ? outcome : deeper;
}

/* Of places that are as good as each other any may be right: what agrees is what does in each. */
static void take_least(struct guess_outcome *best, const struct guess_outcome *other)
{
	if (other->told < best->told)
		best->told = other->told;
	if (other->returns < best->returns)
		best->returns = other->returns;
}

static struct guess_outcome try_places(struct flow_guess *guess, const struct pt_flow *at,
				       unsigned depth, struct return_place *ret)
{
	struct guess_outcome best = { .verdict = GUESS_REFUTED };
	struct return_places places = { 0 };

	ret->ip = 0;
	return_places_add_open(&places, at);
	return_places_add_seen(&places, at);
	if (!places.count)
		return outcome_of(guess, at);
	for (unsigned i = 0; i < places.count; i++) {
		struct guess_outcome outcome = try_place(guess, at, &places.items[i], depth);

		if (outcome.verdict > best.verdict) {
			*ret = places.items[i];
			best = outcome;
		} else if (outcome.verdict == best.verdict) {
			ret->ip = 0;
			take_least(&best, &outcome);
		}
	}
	return best;
}

struct guess_outcome flow_guess_return(struct flow_guess *guess, const struct pt_flow *trial,
				       struct return_place *ret)
{
	return try_places(guess, trial, DEPTH, ret);
}
