#include "decode/flow/pt_flow.h"

#include <string.h>

#include "decode/base/error.h"
#include "decode/flow/flow_guess.h"
#include "decode/flow/flow_mark.h"
#include "decode/flow/flow_packet.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/patch_inference.h"
#include "decode/flow/patch_search.h"
#include "decode/flow/replaced_module.h"

enum { NEAR_BYTES = 256 }; /* of trace: about what a batch of instructions is */

/* In perf's words (its decoder's error messages), so that scripts which look for them go on
 * working. */
static const struct {
	const char *text;
	unsigned code;
} gaps[GAP_KINDS] = {
	[GAP_BAD_PACKET] = { "Bad packet", 3 },
	[GAP_NO_CODE] = { "Failed to get instruction", 5 },
	[GAP_MISMATCH] = { "Trace doesn't match instruction", 6 },
	[GAP_OVERFLOW] = { "Overflow packet", 7 },
	[GAP_LOST] = { "Lost trace data", 8 },
	[GAP_LOOP] = { "Never-ending loop (refer perf config intel-pt.max-loops)", 10 },
	[GAP_NO_MEMORY] = { "Memory allocation failed", 1 },
	[GAP_THUNK] = { "Failed to get instruction of a thunk or trampoline passed through", 5 },
};

const char *gap_text(enum gap_kind kind)
{
	return gaps[kind].text;
}

unsigned gap_code(enum gap_kind kind)
{
	return gaps[kind].code;
}

void pt_flow_init(struct pt_flow *flow, const struct pt_segment *segment,
		  const struct pt_config *config, const struct flow_code *where, bool gaps_only)
{
	memset(flow, 0, sizeof(*flow));
	flow->config = config;
	flow->segment = *segment;
	flow->where = *where;
	flow->clock = segment->clock;
	flow->context = flow->next_context = segment->context;
	flow->context.bits = 0; /* differs, so that the first thing told is the context */
	flow->by_time.since = segment->fresh ? 0 : segment->clock.now;
	flow->told.time = UINT64_MAX;
	flow->gaps_only = gaps_only;
	flow->state = FLOW_LOST;
	flow->announced.lacks_ip = segment->lost;
	pt_cursor_init(&flow->cursor, segment->queue, config, segment->from);
	flow_patch_init(flow);
	flow->return_steps = flow->caller_steps = flow->int3_steps = flow_guess_steps(segment);
}

static void start(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	/* At a PSB, the former segment has told what changes there. */
	if (flow->segment.fresh)
		flow_commit_context(run);
	if (flow->segment.lost && !flow->config->snapshot)
		flow_gap(run, GAP_LOST, 0);
}

/* Whether the batch ends here. What is in it cannot be taken back later. So it does not end between
 * a wrong turn and the packet that shows it, but where a packet has just told an address. */
static bool is_enough(const struct flow_run *run, uint64_t until, uint32_t addresses)
{
	if (run->flow->addresses == addresses || run->flow->tnt_count)
		return false;
	return run->batch->count >= flow_enough_items(run) ||
	       pt_cursor_position(&run->flow->cursor) >= until;
}

/* Where the batch ends if it is not full before: soon on the way to a disagreement. */
static uint64_t end_of_batch(const struct pt_flow *flow, const struct flow_mark *mark)
{
	bool is_near = mark->position < flow->near;

	return mark->position + (is_near ? NEAR_BYTES : FLOW_ENOUGH_BYTES);
}

/* What explains a disagreement is looked for from the mark on. Where nobody asks for instructions
 * that is far back: go there once more, and come to the disagreement in small batches, so that the
 * same is found whatever is asked for. Returns false where the mark is near. */
static bool come_near(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	uint64_t position = pt_cursor_position(&flow->cursor);
	struct flow_patches patches;

	if (position <= flow->near || position - mark->position <= NEAR_BYTES)
		return false;
	patches = flow->patches;
	flow_mark_return(run, mark, &patches);
	flow->near = position;
	return true;
}

/* Only the flow and its mark point to blocks, which will be looked up again. */
static void forget_code(struct pt_flow *flow, struct flow_mark *mark)
{
	flow->block = mark->flow.block = NULL;
	code_trim(flow->where.code);
}

static bool can_run_fast(const struct pt_flow *flow)
{
	return !flow->quick && !flow->where.sites && !flow->learned.modules.any;
}

int pt_flow_run(struct pt_flow *flow, struct flow_batch *batch)
{
	struct flow_run run = { flow, batch };
	struct flow_mark mark;

	batch->count = batch->context_count = 0;
	if (!flow->context.bits)
		start(&run);
	flow_patch_settle(flow);
	flow_mark_set(&run, &mark);
	while (flow_has_room(&run)) {
		uint64_t until;
		uint32_t addresses;
		bool has_ended;
		int r;

		if (flow_meets_kernel(flow))
			patch_inference_begin(&run, &mark);
		until = end_of_batch(flow, &mark);
		has_ended = can_run_fast(flow) && flow_run_fast(&run, until);
		addresses = flow->addresses;
		if (has_ended && !flow_is_in_doubt(flow))
			return 0;
		/* A full batch ends here, too, whichever blocks were linked. */
		if (!has_ended && !flow->tnt_count && !flow_has_room(&run))
			return 0;
		r = has_ended ? 0 : flow_next(&run);
		if (flow->learned.modules.doubt.name && replaced_module_apply(&run, &mark))
			continue;
		if (flow->disagrees && (patch_inference_apply(&run, &mark) ||
					come_near(&run, &mark) || patch_search(&run, &mark)))
			continue;
		if (flow->ways_found != mark.flow.ways_found)
			flow_mark_set(&run, &mark);
		if (flow_should_forget_code(flow))
			forget_code(flow, &mark);
		if (r)
			return r;
		if (is_enough(&run, until, addresses))
			return 0;
	}
	return 0;
}
