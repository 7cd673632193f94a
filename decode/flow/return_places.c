#include "decode/flow/return_places.h"

#include "decode/code/caller_table.h"
#include "decode/flow/flow_step.h"
#include "decode/flow/patch_inference.h"

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

bool return_places_add_callers(struct return_places *places, const struct pt_flow *flow)
{
	struct machine *machine = flow->block->space->machine;
	const uint64_t ip = return_sites_key(flow->block);
	const unsigned room = RETURN_PLACES - places->count;
	const struct caller_table *table;
	uint64_t callers[RETURN_PLACES];
	struct symbol_view symbol;
	unsigned count;

	machine_symbol(machine, -1, ip, flow_ns(flow), &symbol);
	table = symbol.name ? machine_callers(machine) : NULL;
	count = table ? caller_table_find(table, ip - symbol.offset, callers, room) : room + 1;
	for (unsigned i = 0; i < count && count <= room; i++)
		add(places, callers[i], 0);
	return count <= room;
}

void return_place_enter(const struct return_place *place, struct pt_flow *flow)
{
	return_stack_drop_doubted(&flow->calls, place->popped);
	flow->state = FLOW_RUNNING;
	flow->ip = place->ip;
	flow->block = NULL;
}
