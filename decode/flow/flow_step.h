/* How a flow moves through code: the part of pt_flow that looks at blocks. Internal to the flow. */
#pragma once

#include "decode/flow/pt_flow.h"

/** One flow and the batch that it fills now. */
struct flow_run {
	struct pt_flow *flow;
	struct flow_batch *batch;
};

/** The present time in ns of perf's clock. */
static inline uint64_t flow_ns(const struct pt_flow *flow)
{
	return time_conv_ns(&flow->config->conv, flow->clock.now);
}

/** Append an item; there is room (FLOW_MARGIN). */
static inline struct flow_item *flow_add(struct flow_run *run, enum flow_kind kind, uint64_t value)
{
	struct flow_item *item = &run->batch->items[run->batch->count++];

	*item = (struct flow_item){ .kind = (uint8_t)kind, .value = value };
	return item;
}

/** Append a FLOW_TIME. */
void flow_add_time(struct flow_run *run);

/** Append an item about flow, unless only gaps are asked for. */
static inline void flow_say(struct flow_run *run, enum flow_kind kind, uint64_t value)
{
	if (!run->flow->gaps_only)
		(void)flow_add(run, kind, value);
}

/* Bytes of trace after which a batch ends where an address is told, however few its items are. */
enum { FLOW_ENOUGH_BYTES = 4096 };

/** Items after which a batch ends where an address is told. */
static inline uint32_t flow_enough_items(const struct flow_run *run)
{
	return (run->batch->room - FLOW_MARGIN) / 4 * 3;
}

/**
 * Take packets as long as they are of the common kinds and lead along linked blocks; flow_next()
 * does the same with any packet, one at a time. Does nothing where that is not so.
 *
 * Returns true when the batch has enough in it, or position `until` has been reached, and an
 * address was just told; or when flow_is_in_doubt().
 */
bool flow_run_fast(struct flow_run *run, uint64_t until);

/** Whether the memory for code is full and can be emptied now, since no item points to blocks. A
 * single packet may lead through more code than fits. In a trial it cannot be emptied, and what a
 * trial finds does not depend on how full it is. */
static inline bool flow_should_forget_code(const struct pt_flow *flow)
{
	return flow->gaps_only && !flow->trial && code_is_full(flow->where.code);
}

/** Whether packets and code have just disagreed, or the code may have been replaced. This is dealt
 * with before the next packet, as long as the batch can be taken back. */
static inline bool flow_is_in_doubt(const struct pt_flow *flow)
{
	return flow->disagrees || flow->learned.modules.doubt.name;
}

/** Whether the flow comes to the code of a kernel for the first time, and what it tells of it
 * matters. */
static inline bool flow_meets_kernel(const struct pt_flow *flow)
{
	return flow->ip >> 63 && !flow->learned.met_kernel && !flow->gaps_only &&
	       flow->where.inference;
}

/** Whether the batch has room for all items that one more packet may add. */
static inline bool flow_has_room(const struct flow_run *run)
{
	return run->batch->count < run->batch->room - FLOW_MARGIN &&
	       run->batch->context_count < FLOW_CONTEXTS - 4;
}

/** Append a FLOW_TIME if the time has changed, unless only gaps are asked for. */
static inline void flow_tell_time(struct flow_run *run)
{
	const struct pt_flow *flow = run->flow;

	if (!flow->gaps_only &&
	    (flow->clock.now != flow->told.time || flow->cycles != flow->told.cycles))
		flow_add_time(run);
}

/** Append a FLOW_SWITCH if only gaps are asked for, which are told with their thread; otherwise
 * what happens here tells it. */
void flow_say_switch(struct flow_run *run);

/** The pending context becomes the present one; append a FLOW_CONTEXT if it differs. */
void flow_commit_context(struct flow_run *run);

/** Report a gap about `ip` (0 unknown) and lose sync. */
void flow_gap(struct flow_run *run, enum gap_kind kind, uint64_t ip);

/** Tracing is (again) at `ip`; `flags` of FLOW_BEGIN. */
void flow_begin_at(struct flow_run *run, uint64_t ip, uint8_t flags);

/** The address space of the code at `ip` now; NULL when memory is out. */
struct code_space *flow_space(struct pt_flow *flow, uint64_t ip);

/** The block at `ip` as the code is now, and as its patches have it, which has no instructions
 * where no code is known; NULL when memory is out. */
struct block *flow_block_at(struct pt_flow *flow, uint64_t ip);

/**
 * Set the flow's `block` to the one at its `ip`, if the cache has it. False otherwise: the code has
 * to be read, or there is none.
 */
bool flow_knows_block(struct pt_flow *flow);

/** Follow the pending TNT bits, as many as there is room for. */
void flow_run_tnt(struct flow_run *run);

/**
 * Follow code that needs no packet up to `ip`. Returns 0; or -PTVM_INCONSISTENT with the gap
 * reported and sync lost when it cannot be reached.
 */
int flow_walk_to(struct flow_run *run, uint64_t ip);

/** A TIP that belongs to the next indirect branch, return or far transfer. */
void flow_take_branch(struct flow_run *run, uint64_t ip);

/**
 * Packets ended without a FUP: find the instruction that ended them, and report the end.
 * `ip` is where that went, 0 when it is not told.
 */
void flow_end_by_branch(struct flow_run *run, uint64_t ip);
