#include "decode/flow/flow_callers.h"

#include <stdlib.h>

#include "decode/flow/flow_guess.h"
#include "decode/flow/flow_mark.h"
#include "decode/flow/flow_patch.h"

enum {
	DEPTH = 8,        /* further returns to unknown calls on the way */
	ADDRESS = 4,      /* is worth so many returns that agree */
	LEAST = 20,       /* of these must agree, */
	LEAD = 12,        /* so many more than where any other place is right */
	REFUTED = -1,     /* instead of their number */
	STATES = 1 << 10, /* of returns that are remembered */
	PROBES = 8,
};

/* A return to an unknown call that was tried at some place of the trace: all that leads there leads
 * on in the same way. */
struct state {
	const struct block *block; /* NULL: none */
	uint64_t position;
	uint32_t tnt_count;
	int gain; /* what agrees behind it; REFUTED is not told, as not all calls are known */
};

struct search {
	struct flow_guess *guess;
	struct state states[STATES];
};

static int score_of(const struct guess_outcome *outcome)
{
	if (outcome->verdict == GUESS_REFUTED)
		return REFUTED;
	return (int)(outcome->returns + ADDRESS * outcome->told);
}

/* The state of a flow at a return, or a free one; NULL: there is no room. */
static struct state *state_of(struct search *search, const struct pt_flow *at)
{
	const uint64_t position = pt_cursor_position(&at->cursor);
	const uint64_t key = at->block->ip ^ position << 8 ^ (uint64_t)at->tnt_count << 48;

	for (size_t i = 0; i < PROBES; i++) {
		struct state *state = &search->states[(block_slot(key, STATES - 1) + i) % STATES];

		if (!state->block || (state->block == at->block && state->position == position &&
				      state->tnt_count == at->tnt_count))
			return state;
	}
	return NULL;
}

struct choice {
	struct return_place place;
	int best, second; /* what agrees there, and at the next best one */
};

static int try_state(struct search *search, const struct pt_flow *at, int here, unsigned depth);

static int try_place(struct search *search, const struct pt_flow *at,
		     const struct return_place *place, unsigned depth)
{
	struct guess_outcome outcome;
	struct pt_flow flow;
	int score;

	flow_copy(&flow, at);
	return_place_enter(place, &flow);
	outcome = flow_guess_follow(search->guess, &flow);
	score = flow.odd_branches == at->odd_branches ? score_of(&outcome) : REFUTED;
	if (score == REFUTED || outcome.verdict == GUESS_AGREES || !depth ||
	    flow.state != FLOW_AT_RETURN)
		return score;
	return try_state(search, &flow, score, depth - 1);
}

/* Try all places; nothing where they are too many. Deeper down one is enough that agrees. */
static struct choice try_places(struct search *search, const struct pt_flow *at, unsigned depth)
{
	struct choice ret = { .best = REFUTED, .second = REFUTED };
	struct return_places places = { .count = 0 };

	return_places_add_open(&places, at);
	return_places_add_seen(&places, at);
	if (!return_places_add_callers(&places, at))
		return ret;
	for (unsigned i = 0; i < places.count && search->guess->steps; i++) {
		int score = try_place(search, at, &places.items[i], depth);

		if (score > ret.best) {
			ret = (struct choice){ places.items[i], score, ret.best };
		} else if (score > ret.second) {
			ret.second = score;
		}
		if (depth < DEPTH && ret.best >= LEAST + LEAD)
			break;
	}
	return ret;
}

/* Go on behind a return, up to which `here` agrees. Where no place is right, that is because not
 * all are known. */
static int try_state(struct search *search, const struct pt_flow *at, int here, unsigned depth)
{
	struct state *state = state_of(search, at);
	struct choice choice;

	if (state && state->block)
		return here + state->gain;
	if (state)
		*state = (struct state){ at->block, pt_cursor_position(&at->cursor), at->tnt_count,
					 0 };
	choice = try_places(search, at, depth);
	if (choice.best < here)
		return here;
	if (state)
		state->gain = choice.best - here;
	return choice.best;
}

bool flow_callers_find(struct pt_flow *flow, struct return_place *ret)
{
	struct choice choice = { .best = REFUTED };
	struct search *search;
	struct pt_flow trial;
	bool is_over = false;

	if (!flow->caller_steps || !flow_patch_is_possible(flow->block))
		return false;
	search = calloc(1, sizeof(*search));
	if (search)
		search->guess = flow_guess_new(flow, &flow->caller_steps, &trial);
	if (search && search->guess) {
		choice = try_places(search, &trial, DEPTH);
		is_over = flow_guess_end(search->guess);
	}
	free(search);
	*ret = choice.place;
	return is_over && choice.best >= LEAST && choice.best - choice.second >= LEAD;
}
