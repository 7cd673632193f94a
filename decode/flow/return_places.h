/* Where a compressed return may have gone whose call is not known: behind the calls from before a
 * gap, where the function returned to elsewhere in the trace (return_sites.h), and wherever it is
 * called in the kernel (caller_table.h). Internal to the flow. */
#pragma once

#include "decode/flow/pt_flow.h"

enum {
	RETURN_PLACES = 512,
	RETURN_OPEN_CALLS = 8, /* so many of them from before a gap */
};

struct return_place {
	uint64_t ip;     /* 0: none */
	uint32_t popped; /* doubted calls that are no longer open there */
};

struct return_places {
	struct return_place items[RETURN_PLACES]; /* each once */
	unsigned count;
};

/** Add the places behind the doubted calls of a flow, the innermost first. Those on the other side
 * of the kernel's border are left out. */
void return_places_add_open(struct return_places *places, const struct pt_flow *flow);

/** Add where the return at the end of the flow's block was seen to go. The patches of the flow's
 * queues are inferred first if they are not yet. */
void return_places_add_seen(struct return_places *places, const struct pt_flow *flow);

/** Add where the function with the return at the end of the flow's block is called in the kernel's
 * code. Returns false if that is not known, or not all fit. */
bool return_places_add_callers(struct return_places *places, const struct pt_flow *flow);

/** The flow, which is not at a known place, goes on at one. */
void return_place_enter(const struct return_place *place, struct pt_flow *flow);
