#include "decode/flow_return.h"

#include "decode/flow_guess.h"
#include "decode/patch_inference.h"

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

bool flow_return_find(struct flow_run *run, uint64_t *ret)
{
	struct pt_flow *flow = run->flow, trial;
	struct guess_outcome outcome;
	struct return_place place;
	struct flow_guess *guess;

	if (!flow->calls.is_cut || !flow_guess_is_allowed(flow) || is_behind(flow))
		return false;
	guess = flow_guess_new(flow, &trial);
	if (!guess)
		return false;
	outcome = flow_guess_return(guess, &trial, &place);
	if (!flow_guess_end(guess, flow) || !is_found(&outcome, &place))
		return false;
	return_stack_drop_doubted(&flow->calls, place.popped);
	flow->ways_found++;
	*ret = place.ip;
	return true;
}
