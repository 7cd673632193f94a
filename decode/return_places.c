#include "decode/return_places.h"

#include "decode/patch_inference.h"

static void add(struct return_places *places, uint64_t ip, uint32_t popped)
{
	for (unsigned i = 0; i < places->count; i++)
		if (places->items[i].ip == ip)
			return;
	if (places->count < RETURN_PLACES)
		places->items[places->count++] = (struct return_place){ ip, popped };
}

void return_places_add_open(struct return_places *places, const struct pt_flow *flow)
{
	for (uint32_t i = 0; i < flow->calls.doubts && i < RETURN_OPEN_CALLS; i++) {
		uint64_t ip = return_stack_doubted(&flow->calls, i);

		if (ip >> 63 == flow->ip >> 63)
			add(places, ip, i + 1);
	}
}

void return_places_add_seen(struct return_places *places, const struct pt_flow *flow)
{
	const struct return_entry *entry;

	entry = return_sites_find(patch_inference_returns(flow->where.inference), flow->block);
	for (uint32_t i = 0; entry && entry->count <= RETURN_SITES && i < entry->count; i++)
		add(places, entry->items[i], 0);
}

void return_place_enter(const struct return_place *place, struct pt_flow *flow)
{
	return_stack_drop_doubted(&flow->calls, place->popped);
	flow->state = FLOW_RUNNING;
	flow->ip = place->ip;
	flow->block = NULL;
}
