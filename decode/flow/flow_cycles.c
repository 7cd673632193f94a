#include "decode/flow/flow_cycles.h"

void flow_cycles_begin(struct pt_flow *flow)
{
	flow->by_time.since = flow->clock.now;
	flow->by_time.before = flow->cycles;
}

void flow_cycles_count(struct pt_flow *flow)
{
	const struct pt_config *config = flow->config;
	const uint64_t ticks = flow->clock.now - flow->by_time.since;

	if (config->cyc || !config->max_nonturbo || flow->state != FLOW_RUNNING)
		return;
	if (!flow->by_time.since) {
		flow_cycles_begin(flow);
		return;
	}
	/* since the last change of frequency at once, so that roundings do not add up */
	flow->cycles = flow->by_time.before + (uint64_t)((unsigned __int128)ticks *
							 flow->clock.cbr / config->max_nonturbo);
}
