#include "decode/pt/traced_times.h"

#include "decode/pt/aux_pages.h"
#include "decode/pt/pt_segment.h"

/* When a segment begins: by its PSB+, without which it follows what was before. */
static uint64_t first_tsc(const struct pt_segment *segment, const struct pt_config *config)
{
	struct pt_context context = segment->context;
	struct pt_clock clock = segment->clock;
	struct pt_psb_state state;
	struct pt_cursor cursor;

	pt_cursor_init(&cursor, segment->queue, config, segment->from + PT_PSB_SIZE);
	if (segment->lost || pt_cursor_psb(&cursor, &state) || !state.have_tsc)
		return clock.now;
	pt_context_update(&context, &state);
	pt_segment_feed_clock(&clock, segment->queue, state.position, &context, &state.tsc);
	return clock.now;
}

/* Returns whether the trace from one time to another decides about the range. */
static bool add(uint64_t from, uint64_t to, const struct time_range *range,
		struct traced_times *ret)
{
	if (to < range->from) {
		if (to > ret->before)
			ret->before = to;
		return false;
	}
	if (from <= range->to)
		ret->within = true;
	else if (!ret->after || from < ret->after)
		ret->after = from;
	return true;
}

void traced_times_add(const struct aux_queue *queue, const struct pt_config *config,
		      const struct bytes *mapping, const struct time_range *range,
		      struct traced_times *ret)
{
	struct pt_segment segment;
	struct pt_walk walk;
	bool decided = false;
	uint64_t held = 0;

	pt_walk_init(&walk, queue, config, NULL, 0);
	while (!decided && !pt_walk_next(&walk, &segment)) {
		uint64_t from = first_tsc(&segment, config), to = walk.segment.clock.now;

		if (to)
			decided = add(from ? time_conv_ns(&config->conv, from) : 0,
				      time_conv_ns(&config->conv, to), range, ret);
		aux_pages_pass(mapping, queue, &held, segment.to);
	}
}
