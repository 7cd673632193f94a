#include "decode/flow/flow_return.h"

#include "decode/flow/flow_callers.h"
#include "decode/flow/flow_guess.h"
#include "decode/flow/patch_inference.h"

enum { LEAST_RETURNS = 8 }; /* that agree are as good as an address that does */

/* Whether patches are known that are not in force yet. */
static bool is_behind(const struct pt_flow *flow)
{
	return !flow->learned.is_informed && patch_inference_get(flow->where.inference)->count;
}

static bool is_found(const struct guess_outcome *outcome, const struct return_place *place)
{
	return place->ip && (outcome->verdict == GUESS_AGREES ||
			     (outcome->verdict == GUESS_OPEN &&
			      (outcome->told || outcome->returns >= LEAST_RETURNS)));
}

/* Among the places where calls are doubted, and where it was seen to go. */
static bool find_likely(struct pt_flow *flow, struct return_place *ret)
{
	struct guess_outcome outcome;
	struct flow_guess *guess;
	struct pt_flow trial;

	guess = flow_guess_new(flow, &flow->return_steps, &trial);
	if (!guess)
		return false;
	outcome = flow_guess_return(guess, &trial, ret);
	return flow_guess_end(guess) && is_found(&outcome, ret);
}

bool flow_return_find(struct flow_run *run, uint64_t *ret)
{
	struct pt_flow *flow = run->flow;
	struct return_place place;

	if (!flow->calls.is_cut || !flow_guess_is_allowed(flow) || is_behind(flow))
		return false;
	if (!find_likely(flow, &place) && !flow_callers_find(flow, &place))
		return false;
	return_stack_drop_doubted(&flow->calls, place.popped);
	flow->ways_found++;
	*ret = place.ip;
	return true;
}
