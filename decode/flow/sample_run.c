#include "decode/flow/sample_run.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"

enum { NEAR = 4 }; /* segments on either side */

int sample_run_init(struct patch_inference *inference, uint64_t bytes, uint64_t insns,
		    struct sample_run *ret)
{
	ret->inference = inference;
	ret->insns = insns;
	ret->sites = NULL;
	ret->stamp = 0;
	memset(&ret->segments, 0, sizeof(ret->segments));
	code_init(&ret->code, inference->sources.machines);
	return sample_segments_read(&inference->sources, bytes, &ret->segments);
}

static void begin(struct sample_run *run, size_t index, struct flow_code *where)
{
	const struct sample_segment *item = &run->segments.items[index];

	where->code = &run->code;
	where->inference = NULL;
	pt_flow_init(&run->flow, &item->segment, run->inference->sources.config, where, true);
	if (!where->candidates)
		run->flow.patches.work = 0;
	run->batch.room = FLOW_BATCH;
}

/* Fill the batch. Returns false when the segment has ended. */
static bool fill(struct sample_run *run)
{
	bool goes_on = !pt_flow_run(&run->flow, &run->batch);

	if (code_is_full(&run->code)) {
		run->flow.block = NULL;
		code_trim(&run->code);
	}
	return goes_on;
}

static struct flow_code where_of(const struct sample_run *run, size_t index)
{
	return run->inference->sources.items[run->segments.items[index].source].where;
}

bool sample_run_disagrees(struct sample_run *run, size_t index, bool is_noting)
{
	struct flow_code where = where_of(run, index);

	where.returns = is_noting ? &run->inference->returns : NULL;
	begin(run, index, &where);
	while (!run->flow.disagreements && fill(run))
		;
	return run->flow.disagreements;
}

int sample_run_settle(struct sample_run *run)
{
	run->sites = calloc(run->segments.count + 1, sizeof(*run->sites));
	return run->sites ? 0 : -PTVM_NO_MEMORY;
}

static void run_segment(struct sample_run *run, const struct sample_pass *pass, size_t index,
			struct mismatch_log *log)
{
	struct flow_code where = where_of(run, index);
	struct pt_flow *flow = &run->flow;

	where.candidates = pass->candidates;
	where.log = log;
	where.sites = pass->is_noting ? &run->sites[index] : NULL;
	where.returns = pass->is_noting ? &run->inference->returns : NULL;
	met_sites_begin(&run->sites[index], ++run->stamp);
	begin(run, index, &where);
	memcpy(flow->patches.items, pass->patches->items, sizeof(flow->patches.items));
	flow->patches.count = pass->patches->count;
	if (run->is_settled)
		flow->patches.code = &run->code;
	run->is_settled = true;
	while (fill(run))
		;
	met_sites_settle(&run->sites[index]);
	run->segments.items[index].until = flow->clock.now;
	run->insns -= flow->insns < run->insns ? flow->insns : run->insns;
}

/* Whether a segment may come by what a patch changes while it does. */
static bool is_met(const struct sample_run *run, const struct flow_patch *patch, size_t index)
{
	const struct sample_segment *item = &run->segments.items[index];

	return item->until >= patch->since && item->segment.clock.now < patch->until &&
	       met_sites_have(&run->sites[index], &patch->change);
}

static bool is_odd(const struct sample_pass *pass, size_t index)
{
	return pass->odds && mismatch_log_is_at_odds(pass->odds, (uint32_t)index);
}

/* Behind the segment, by steps of 1 or -1, the last of a few that come by the pass's patch and are
 * at odds. */
static size_t last_near(const struct sample_run *run, const struct sample_pass *pass, size_t step)
{
	size_t last = pass->segment;
	unsigned found = 0;

	for (size_t i = last + step; i < run->segments.count && found < NEAR; i += step) {
		if (!is_odd(pass, i) || !is_met(run, pass->patch, i))
			continue;
		last = i;
		found++;
	}
	return last;
}

/* From the first to the last segment of SAMPLE_NEAR. */
struct near {
	size_t first, last;
};

/* Of segments that come by the pass's patch. */
static bool is_chosen(const struct sample_pass *pass, const struct near *near, size_t index)
{
	bool is_near = index >= near->first && index <= near->last;

	switch (pass->which) {
	case SAMPLE_ONE: return index == pass->segment;
	case SAMPLE_NEAR: return is_odd(pass, index) && is_near;
	case SAMPLE_ODDS: return is_odd(pass, index) && !is_near;
	case SAMPLE_OTHERS: return !is_odd(pass, index);
	default: return true;
	}
}

static bool is_gone_through(const struct sample_run *run, const struct sample_pass *pass,
			    const struct near *near, size_t index)
{
	if (!pass->base)
		return true;
	if (pass->candidates && pass->candidates->asked < PATCH_ASKED_MAX &&
	    mismatch_log_is_at_odds(pass->base, (uint32_t)index))
		return true;
	return pass->patch && is_met(run, pass->patch, index) && is_chosen(pass, near, index);
}

void sample_run_pass(struct sample_run *run, const struct sample_pass *pass,
		     struct mismatch_log *ret)
{
	struct near near = { 0 };

	if (pass->which == SAMPLE_NEAR || pass->which == SAMPLE_ODDS)
		near = (struct near){ last_near(run, pass, -(size_t)1), last_near(run, pass, 1) };
	run->is_settled = false;
	/* what was tried before is not in the way of links */
	code_forget_patched(&run->code);
	mismatch_log_clear(ret);
	for (size_t i = 0; i < run->segments.count && ret->count <= pass->most; i++) {
		const struct pt_segment *segment = &run->segments.items[i].segment;

		ret->source = run->segments.items[i].source;
		ret->segment = (uint32_t)i;
		mismatch_log_add(ret, (struct mismatch){ .kind = MISMATCH_FOUND,
							 .position = segment->from,
							 .time = segment->clock.now });
		if (is_gone_through(run, pass, &near, i))
			run_segment(run, pass, i, ret);
		else
			mismatch_log_add_from(ret, pass->base);
	}
}

void sample_run_free(struct sample_run *run)
{
	for (size_t i = 0; run->sites && i < run->segments.count; i++)
		met_sites_free(&run->sites[i]);
	free(run->sites);
	sample_segments_free(&run->segments);
	if (run->inference)
		code_free(&run->code);
}
