#include "decode/flow_return.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decode/flow_packet.h"
#include "decode/patch_inference.h"

enum {
	PLACES = 24,    /* that a return may go to, */
	OPEN_CALLS = 8, /* so many of them from before the gap */
	BITS = 256,     /* branches among which the return from unknown code is looked for */
	DEPTH = 6,      /* further returns to unknown calls on the way */
	TOLD = 5,       /* addresses that packets must tell in agreement */
	STEPS = 4096,   /* each about a packet, for one return, */
	SEGMENT_STEPS = 1 << 15, /* for all of a segment, and for each of its bytes: */
	BYTE_STEPS = 2,
};

/* How packets and the code at a place go together. */
enum verdict {
	REFUTED,
	OPEN, /* there is no telling */
	AGREES,
};

struct outcome {
	enum verdict verdict;
	uint32_t told; /* addresses told up to there */
};

struct place {
	uint64_t ip;     /* 0: none */
	uint32_t popped; /* calls from before the gap that are no longer open there */
};

struct places {
	struct place items[PLACES];
	unsigned count;
};

struct guess {
	struct flow_batch batch; /* nobody reads it */
	unsigned steps, given;   /* left, and at first */
	uint32_t addresses;      /* told where it began */
};

/* Where a call may have returned to its place. */
struct way_back {
	uint64_t position; /* behind the TNT packet with the return, */
	uint32_t count;    /* of which so many branches are left */
	unsigned found;    /* of such that agree with the packets */
};

struct ways_back {
	struct places places;
	struct way_back items[OPEN_CALLS]; /* of each place */
};

static void copy_flow(struct pt_flow *to, const struct pt_flow *from)
{
	memcpy(to, from, /* unused patches are not copied */
	       offsetof(struct pt_flow, patches.items) +
		       from->patches.count * sizeof(*from->patches.items));
}

void flow_return_init(struct pt_flow *flow)
{
	uint64_t bytes = flow->segment.to - flow->segment.from;

	flow->return_steps = SEGMENT_STEPS + BYTE_STEPS * bytes;
}

static struct guess *guess_new(const struct pt_flow *flow, struct pt_flow *trial)
{
	struct guess *guess = malloc(sizeof(*guess));

	if (!guess)
		return NULL;
	guess->batch.room = FLOW_BATCH;
	guess->batch.count = guess->batch.context_count = 0;
	guess->steps = flow->return_steps < STEPS ? (unsigned)flow->return_steps : STEPS;
	guess->given = guess->steps;
	guess->addresses = flow->addresses;
	copy_flow(trial, flow);
	trial->is_trial = trial->is_guess = trial->gaps_only = true;
	trial->disagrees = false;
	trial->where.log = NULL;
	return guess;
}

/* Returns whether there was enough time for it. */
static bool guess_end(struct guess *guess, struct pt_flow *flow)
{
	bool is_over = guess->steps;

	flow->return_steps -= guess->given - guess->steps;
	free(guess);
	return is_over;
}

static void add_place(struct places *places, uint64_t ip, uint32_t popped)
{
	for (unsigned i = 0; i < places->count; i++)
		if (places->items[i].ip == ip)
			return;
	if (places->count < PLACES)
		places->items[places->count++] = (struct place){ ip, popped };
}

static void add_open_calls(const struct pt_flow *flow, struct places *ret)
{
	for (uint32_t i = 0; i < flow->return_doubts && i < OPEN_CALLS; i++) {
		uint64_t ip = flow->returns[(flow->return_top - 1 - i) % RETURN_STACK];

		if (ip >> 63 == flow->ip >> 63)
			add_place(ret, ip, i + 1);
	}
}

static void find_places(const struct pt_flow *flow, struct places *ret)
{
	const struct return_entry *entry;

	ret->count = 0;
	add_open_calls(flow, ret);
	entry = return_sites_find(patch_inference_returns(flow->where.inference), flow->block);
	for (uint32_t i = 0; entry && entry->count <= RETURN_SITES && i < entry->count; i++)
		add_place(ret, entry->items[i], 0);
}

static void pop(struct pt_flow *flow, const struct place *place)
{
	flow->return_top -= place->popped;
	flow->return_doubts -= place->popped;
}

static struct outcome try_places(struct guess *guess, const struct pt_flow *at, unsigned depth,
				 struct place *ret);

/* Follow the flow from a place to a verdict. */
static struct outcome follow(struct guess *guess, struct pt_flow *flow, unsigned depth)
{
	struct flow_run run = { flow, &guess->batch };
	const uint32_t gaps = flow->gaps;
	struct place ignored;

	while (guess->steps) {
		struct outcome outcome = { AGREES, flow->addresses - guess->addresses };
		int r;

		if (outcome.told >= TOLD)
			return outcome;
		guess->steps--;
		guess->batch.count = guess->batch.context_count = 0;
		r = flow_next(&run);
		outcome.told = flow->addresses - guess->addresses;
		if (flow->disagrees)
			outcome.verdict = REFUTED;
		else if (flow->is_at_unknown && depth)
			return try_places(guess, flow, depth - 1, &ignored);
		else if (r || flow->gaps != gaps || flow->is_at_unknown)
			outcome.verdict = OPEN;
		else
			continue;
		return outcome;
	}
	return (struct outcome){ OPEN, 0 };
}

/* Go on at a place behind the branch that the flow was at. */
static void go_on(struct pt_flow *flow, const struct place *place)
{
	pop(flow, place);
	flow->is_at_unknown = false;
	flow->state = FLOW_RUNNING;
	flow->ip = place->ip;
	flow->block = NULL;
}

/* What the best place comes to, which is `ret` if no other one is as good. */
static struct outcome try_places(struct guess *guess, const struct pt_flow *at, unsigned depth,
				 struct place *ret)
{
	struct outcome best = { REFUTED, 0 };
	struct places places;

	ret->ip = 0;
	find_places(at, &places);
	if (!places.count)
		return (struct outcome){ OPEN, at->addresses - guess->addresses };
	for (unsigned i = 0; i < places.count; i++) {
		struct outcome outcome;
		struct pt_flow flow;

		copy_flow(&flow, at);
		go_on(&flow, &places.items[i]);
		outcome = follow(guess, &flow, depth);
		if (outcome.verdict > best.verdict)
			*ret = places.items[i];
		else if (outcome.verdict == best.verdict)
			ret->ip = 0;
		if (outcome.verdict >= best.verdict)
			best = outcome;
	}
	return best;
}

/* Whether patches are known that are not in force yet. */
static bool is_behind(const struct pt_flow *flow)
{
	return !flow->is_informed && patch_inference_get(flow->where.inference)->count;
}

bool flow_return_find(struct flow_run *run, uint64_t *ret)
{
	struct pt_flow *flow = run->flow, at;
	struct outcome outcome;
	struct guess *guess;
	struct place place;

	if (!flow->is_after_gap || flow->is_trial || !flow->where.inference || is_behind(flow))
		return false;
	guess = guess_new(flow, &at);
	if (!guess)
		return false;
	outcome = try_places(guess, &at, DEPTH, &place);
	if (!guess_end(guess, flow) || !place.ip || outcome.verdict == REFUTED ||
	    (outcome.verdict == OPEN && !outcome.told))
		return false;
	pop(flow, &place);
	*ret = place.ip;
	return true;
}

/* All calls from before the gap that are still open are known again. */
static void trust_calls(struct pt_flow *flow)
{
	flow->return_count = flow->return_doubts;
	flow->return_doubts = 0;
}

/* Each of some branches may be the return from unknown code. */
static void try_bits(struct guess *guess, const struct pt_flow *lost, uint64_t tnt, uint32_t count,
		     struct ways_back *ret)
{
	while (count-- > 0) {
		for (unsigned i = 0; i < ret->places.count && tnt >> count & 1; i++) {
			struct pt_flow flow;

			copy_flow(&flow, lost);
			go_on(&flow, &ret->places.items[i]);
			trust_calls(&flow);
			flow.tnt = tnt;
			flow.tnt_count = count;
			if (follow(guess, &flow, 0).verdict != AGREES)
				continue;
			ret->items[i].position = pt_cursor_position(&lost->cursor);
			ret->items[i].count = count;
			ret->items[i].found++;
		}
	}
}

/* Read the next packet of a lost flow that is not about time; returns whether it is a TNT. */
static bool next_tnt(struct guess *guess, struct pt_flow *lost, struct pt_packet *ret)
{
	struct flow_run run = { lost, &guess->batch };

	for (;;) {
		struct pt_cursor cursor = lost->cursor;

		if (pt_cursor_next(&cursor, ret))
			return false;
		if (ret->kind != PT_TNT && ret->kind != PT_MTC && ret->kind != PT_CYC &&
		    ret->kind != PT_TSC && ret->kind != PT_CBR && ret->kind != PT_PAD)
			return false;
		guess->batch.count = guess->batch.context_count = 0;
		if (!guess->steps)
			return false;
		guess->steps--;
		if (flow_next(&run))
			return false;
		if (ret->kind == PT_TNT)
			return true;
	}
}

static void look(struct guess *guess, struct pt_flow *lost, uint64_t tnt, uint32_t count,
		 struct ways_back *ret)
{
	struct pt_packet packet;
	uint32_t bits = 0;

	add_open_calls(lost, &ret->places);
	try_bits(guess, lost, tnt, count, ret);
	while (bits < BITS && guess->steps && next_tnt(guess, lost, &packet)) {
		try_bits(guess, lost, packet.payload, packet.count, ret);
		bits += packet.count;
	}
}

/* The way back to the innermost call that there is any to. */
static void choose(const struct ways_back *ways, struct flow_way_back *ret)
{
	unsigned i = 0;

	while (i < ways->places.count && !ways->items[i].found)
		i++;
	if (i == ways->places.count || ways->items[i].found > 1)
		return;
	*ret = (struct flow_way_back){ .ip = ways->places.items[i].ip,
				       .position = ways->items[i].position,
				       .popped = ways->places.items[i].popped,
				       .count = ways->items[i].count };
}

void flow_return_look(struct flow_run *run, uint64_t tnt, uint32_t count)
{
	struct pt_flow *flow = run->flow, lost;
	struct ways_back ways = { 0 };
	struct guess *guess;

	if (flow->is_trial || !flow->where.inference || !flow->return_doubts)
		return;
	guess = guess_new(flow, &lost);
	if (!guess)
		return;
	look(guess, &lost, tnt, count, &ways);
	if (guess_end(guess, flow))
		choose(&ways, &flow->way_back);
	if (count)
		flow_return_resume(run, &(struct pt_packet){ .payload = tnt });
}

void flow_return_resume(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	struct flow_way_back way = flow->way_back;

	if (!way.ip || way.position != pt_cursor_position(&flow->cursor))
		return;
	flow->way_back.ip = 0;
	flow_begin_at(run, way.ip);
	pop(flow, &(struct place){ way.ip, way.popped });
	trust_calls(flow);
	flow->tnt = packet->payload;
	flow->tnt_count = way.count;
	flow->is_return_found = true;
}
