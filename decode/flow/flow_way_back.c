#include "decode/flow/flow_way_back.h"

#include "decode/flow/flow_guess.h"
#include "decode/flow/flow_mark.h"
#include "decode/flow/flow_packet.h"

enum { BITS = 256 }; /* among which the return from unknown code is looked for */

/* The ways back to each of the open calls. */
struct ways {
	struct return_places places;
	struct {
		struct flow_way_back last;
		unsigned count; /* of ways that agree with the packets */
	} items[RETURN_OPEN_CALLS];
};

/* All calls from before the gap that are still open are known again. */
static void go_back(struct pt_flow *flow, const struct flow_way_back *way, uint64_t tnt)
{
	const struct return_place place = { way->ip, way->popped };

	return_place_enter(&place, flow);
	return_stack_trust(&flow->calls);
	flow->tnt = tnt;
	flow->tnt_count = way->count;
}

/* Each of some branches may be the return from unknown code. */
static void try_bits(struct flow_guess *guess, const struct pt_flow *lost, uint64_t tnt,
		     uint32_t count, struct ways *ret)
{
	while (count-- > 0) {
		for (unsigned i = 0; i < ret->places.count && tnt >> count & 1; i++) {
			const struct return_place *place = &ret->places.items[i];
			struct flow_way_back way = { .ip = place->ip,
						     .position = pt_cursor_position(&lost->cursor),
						     .count = count,
						     .popped = place->popped };
			struct pt_flow flow;

			flow_copy(&flow, lost);
			go_back(&flow, &way, tnt);
			if (flow_guess_follow(guess, &flow).verdict != GUESS_AGREES)
				continue;
			ret->items[i].last = way;
			ret->items[i].count++;
		}
	}
}

static bool is_about_time(const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_MTC:
	case PT_CYC:
	case PT_TSC:
	case PT_CBR:
	case PT_PAD: return true;
	default: return false;
	}
}

/* Read the next packet of a lost flow that is not about time; returns whether it is a TNT. */
static bool next_tnt(struct flow_guess *guess, struct pt_flow *lost, struct pt_packet *ret)
{
	struct flow_run run = { lost, &guess->batch };

	for (;;) {
		struct pt_cursor cursor = lost->cursor;

		if (pt_cursor_next(&cursor, ret) || (ret->kind != PT_TNT && !is_about_time(ret)))
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

static void try_ways(struct flow_guess *guess, struct pt_flow *lost, uint64_t tnt, uint32_t count,
		     struct ways *ret)
{
	struct pt_packet packet;
	uint32_t bits = 0;

	return_places_add_open(&ret->places, lost);
	try_bits(guess, lost, tnt, count, ret);
	while (bits < BITS && guess->steps && next_tnt(guess, lost, &packet)) {
		try_bits(guess, lost, packet.payload, packet.count, ret);
		bits += packet.count;
	}
}

/* The way back to the innermost call that there is any to; ip 0: none, or one of several. */
static struct flow_way_back choose(const struct ways *ways)
{
	for (unsigned i = 0; i < ways->places.count; i++)
		if (ways->items[i].count)
			return ways->items[i].count == 1 ? ways->items[i].last
							 : (struct flow_way_back){ 0 };
	return (struct flow_way_back){ 0 };
}

void flow_way_back_find(struct flow_run *run, uint64_t tnt, uint32_t count)
{
	struct pt_flow *flow = run->flow, lost;
	struct ways ways = { 0 };
	struct flow_guess *guess;

	if (!flow->calls.doubts || !flow_guess_is_allowed(flow))
		return;
	guess = flow_guess_new(flow, &flow->return_steps, &lost);
	if (!guess)
		return;
	try_ways(guess, &lost, tnt, count, &ways);
	if (flow_guess_end(guess))
		flow->way_back = choose(&ways);
	if (count)
		flow_way_back_take(run, &(struct pt_packet){ .payload = tnt });
}

void flow_way_back_take(struct flow_run *run, const struct pt_packet *packet)
{
	struct pt_flow *flow = run->flow;
	const struct flow_way_back way = flow->way_back;

	if (!way.ip || way.position != pt_cursor_position(&flow->cursor))
		return;
	flow->way_back.ip = 0;
	flow_begin_at(run, way.ip, 0);
	go_back(flow, &way, packet->payload);
	flow->ways_found++;
}
