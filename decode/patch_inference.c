#include "decode/patch_inference.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/flow_patch.h"
#include "decode/machines.h"
#include "decode/mismatch_log.h"
#include "decode/patch_search.h"
#include "decode/sample_segments.h"

enum {
	LEARN_BYTES = 4 << 20,  /* of trace in all queues to learn from, or a sample of so much */
	LOOK_BYTES = 512 << 10, /* the same to see whether there is anything to learn */
	OTHERS = 64,         /* segments kept that are not at odds: what speaks against patches */
	INSNS_MAX = 1 << 27, /* followed in all to learn, about: a second or two */
	HYPOTHESES = 64,     /* kept */
	TRIED = 20,          /* of them in one round */
	FAILED_MAX = 6,      /* rounds that end without a patch */
	LEAST_GAIN = 5,      /* places that a patch must explain: more than chance does; */
	KNOWN_GAIN = 2,      /* one that a later copy has; */
	LIMITED_GAIN = 20,   /* one that was in force for a part of the time only, */
	LIMITED_GROUP_GAIN = 10, /* or many at once */
	AGAINST = 16,            /* places that it explains, for each one against it; */
	AGAINST_AT_LAST = 64,    /* the same in the check at the end; */
	ODD = 8,                 /* the same for each one with odd branches only */
	LEARNED_MAX = 4,         /* times that all patches are checked */
	WRONG_BYTES = 1 << 10,   /* of trace for each mismatch: with fewer, the copy is wrong */
	HOPELESS = 1000, /* mismatches more than before: a patch that need not be compared */
};

struct hypothesis {
	struct patch_candidate candidate;
	unsigned times; /* that it was found in this round */
	int64_t gain; /* places that it explains, less those against it; 0: it is not good enough */
	unsigned tried;   /* in vain when there were so many lessons, and one */
	bool is_hopeless; /* a rival explains as much, or the check spoke against it */
};

struct work {
	struct patch_inference *inference;
	struct code code;
	struct flow_patches known;
	struct hypothesis items[HYPOTHESES];
	unsigned count;
	unsigned lessons; /* how often what is known, or unclear, has changed */
	struct pt_flow flow;
	struct flow_batch batch;
	struct patch_candidates candidates;
	struct mismatch_log without, with;
	struct mismatch_log unclear; /* what several patches explain */
	uint64_t insns;              /* that may still be followed */
	struct sample_segments sample;
	uint64_t bytes; /* of it, before some was left out */
};

void patch_inference_init(struct patch_inference *inference, const struct pt_config *config,
			  const struct machines *machines, const struct pt_offsets *offsets)
{
	*inference = (struct patch_inference){ .config = config,
					       .machines = machines,
					       .offsets = *offsets };
	(void)pthread_mutex_init(&inference->lock, NULL);
}

int patch_inference_add(struct patch_inference *inference, const struct aux_queue *queue,
			const struct flow_code *where)
{
	struct inference_source source = { queue, *where };

	return vec_push(&inference->sources, source) ? 0 : -PTVM_NO_MEMORY;
}

void patch_inference_free(struct patch_inference *inference)
{
	if (!inference->config)
		return;
	vec_free(&inference->sources);
	return_sites_free(&inference->returns);
	(void)pthread_mutex_destroy(&inference->lock);
}

/* One run through the sample, with the patches that are known. */
struct pass {
	struct work *work;
	struct mismatch_log *log; /* of it */
	bool is_asking;           /* what might explain the disagreements, too */
	bool is_noting;           /* where functions return to */
	bool is_quick;            /* segments that are not at odds `without` stay as they are */
	size_t most;              /* events; with more, it need not come to the end */
};

static void begin(const struct pass *pass, const struct sample_segment *item)
{
	struct work *work = pass->work;
	struct patch_inference *inference = work->inference;
	struct flow_code where = inference->sources.items[item->source].where;
	struct pt_flow *flow = &work->flow;

	where.code = &work->code;
	where.inference = NULL;
	where.candidates = pass->is_asking ? &work->candidates : NULL;
	where.log = pass->log;
	where.returns = pass->is_noting ? &inference->returns : NULL;
	pt_flow_init(flow, &item->segment, inference->config, &where, true);
	if (!pass->is_asking)
		flow->patches.work = 0;
	memcpy(flow->patches.items, work->known.items, sizeof(flow->patches.items));
	flow->patches.count = work->known.count;
	work->batch.room = FLOW_BATCH;
}

/* Fill the batch. Returns false when the segment has ended. */
static bool run(struct work *work)
{
	bool goes_on = !pt_flow_run(&work->flow, &work->batch);

	if (code_is_full(&work->code)) {
		work->flow.block = NULL;
		code_trim(&work->code);
	}
	return goes_on;
}

static void charge(struct work *work)
{
	work->insns -= work->flow.insns < work->insns ? work->flow.insns : work->insns;
}

static void run_segment(const struct pass *pass, const struct sample_segment *item)
{
	begin(pass, item);
	while (run(pass->work))
		;
	charge(pass->work);
}

static bool is_at_odds(const struct pass *pass, const struct pt_segment *segment)
{
	return mismatch_log_is_at_odds(&pass->work->without, pass->log->source, segment->from,
				       segment->to);
}

static void run_sample(const struct pass *pass)
{
	const struct sample_segments *sample = &pass->work->sample;

	mismatch_log_clear(pass->log);
	for (size_t i = 0; i < sample->count && pass->log->count <= pass->most; i++) {
		const struct pt_segment *segment = &sample->items[i].segment;

		pass->log->source = sample->items[i].source;
		mismatch_log_add(pass->log, (struct mismatch){ .kind = MISMATCH_FOUND,
							       .position = segment->from,
							       .time = segment->clock.now });
		if (pass->is_quick && !is_at_odds(pass, segment))
			mismatch_log_add_from(pass->log, &pass->work->without, segment->from,
					      segment->to);
		else
			run_segment(pass, &sample->items[i]);
	}
}

/* See where packets and code disagree with the patches that are known, and with `is_asking` what
 * might explain it. */
static void run_without(struct work *work, bool is_asking)
{
	run_sample(&(struct pass){ .work = work,
				   .log = &work->without,
				   .is_asking = is_asking,
				   .is_noting = is_asking,
				   .most = SIZE_MAX });
}

static struct hypothesis *find_hypothesis(struct work *work, const struct flow_patch *patch)
{
	for (unsigned i = 0; i < work->count; i++) {
		if (flow_patch_is_same(&work->items[i].candidate.patch, patch))
			return &work->items[i];
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct hypothesis *left = a, *right = b;

	if (left->times != right->times)
		return left->times > right->times ? -1 : 1;
	if (left->candidate.is_known != right->candidate.is_known)
		return left->candidate.is_known ? -1 : 1;
	return (left->candidate.unlikely > right->candidate.unlikely) -
	       (left->candidate.unlikely < right->candidate.unlikely);
}

/* Count how often each candidate of the last pass was found. */
static void gather(struct work *work)
{
	for (unsigned i = 0; i < work->count; i++)
		work->items[i].times = 0;
	for (unsigned i = 0; i < work->candidates.count; i++) {
		const struct patch_candidate *candidate = &work->candidates.items[i];
		struct hypothesis *hypothesis = find_hypothesis(work, &candidate->patch);

		if (!hypothesis && work->count < HYPOTHESES) {
			hypothesis = &work->items[work->count++];
			*hypothesis = (struct hypothesis){ .candidate = *candidate };
		}
		if (hypothesis)
			hypothesis->times++;
	}
	qsort(work->items, work->count, sizeof(*work->items), compare);
}

/* Compare the sample with one more patch with that in `work->without`. */
static struct mismatch_verdict try_patch(struct work *work, const struct flow_patch *patch,
					 bool is_quick)
{
	struct flow_patches *known = &work->known;
	size_t most = 2 * work->without.count + HOPELESS;
	struct mismatch_verdict verdict;

	known->items[known->count] = *patch;
	known->items[known->count].since = 0;
	known->items[known->count++].until = UINT64_MAX;
	run_sample(&(struct pass){
		.work = work, .log = &work->with, .is_quick = is_quick, .most = most });
	known->count--;
	if (work->with.count > most ||
	    mismatch_log_compare(&work->without, &work->with, &work->unclear, &verdict))
		verdict = (struct mismatch_verdict){ 0 };
	return verdict;
}

static unsigned least_gain(const struct patch_candidate *candidate)
{
	return candidate->is_known ? KNOWN_GAIN : LEAST_GAIN;
}

static bool is_good(const struct mismatch_verdict *verdict, const struct patch_candidate *candidate,
		    unsigned against)
{
	bool is_limited = verdict->since || verdict->until != UINT64_MAX;
	bool is_group = candidate->patch.group.table;
	unsigned least = least_gain(candidate);

	if (is_limited && !candidate->is_known)
		least = is_group ? LIMITED_GROUP_GAIN : LIMITED_GAIN;

	return verdict->gone >= least && verdict->against <= verdict->gone / against &&
	       verdict->odd <= verdict->gone / ODD;
}

/* Below 0: more speaks for `a`. */
static int compare_gains(const struct hypothesis *a, const struct hypothesis *b)
{
	if (a->gain != b->gain)
		return a->gain > b->gain ? -1 : 1;
	if (a->candidate.is_known != b->candidate.is_known)
		return a->candidate.is_known ? -1 : 1;
	return (a->candidate.unlikely > b->candidate.unlikely) -
	       (a->candidate.unlikely < b->candidate.unlikely);
}

/* Put a patch in force at the time of the verdict. Where the sample has nothing to say, that is no
 * longer than it must be: from the beginning of a segment to that of another. */
static void set_times(const struct work *work, const struct mismatch_verdict *verdict,
		      struct flow_patch *patch)
{
	patch->since = verdict->since;
	patch->until = verdict->until;
	for (size_t i = 0; i < work->sample.count; i++) {
		uint64_t time = work->sample.items[i].segment.clock.now;

		if (patch->since && time > patch->since && time <= verdict->first)
			patch->since = time;
		if (patch->until != UINT64_MAX && time > verdict->last && time < patch->until)
			patch->until = time;
	}
}

/* Try a hypothesis on the sample. Returns whether it may be right. */
static bool weigh(struct work *work, struct hypothesis *hypothesis)
{
	struct flow_patch *patch = &hypothesis->candidate.patch;
	struct mismatch_verdict verdict;

	/* Most explain hardly anything; that shows where it should. */
	verdict = try_patch(work, patch, true);
	if (verdict.gone < least_gain(&hypothesis->candidate))
		return false;
	verdict = try_patch(work, patch, false);
	if (!is_good(&verdict, &hypothesis->candidate, AGAINST))
		return false;
	hypothesis->gain = (int64_t)verdict.gone - verdict.against - verdict.odd;
	set_times(work, &verdict, patch);
	return true;
}

/* Several hypotheses do equally well: none of them is taken, and what they explain counts no more
 * for others. */
static void give_up(struct work *work, const struct hypothesis *best)
{
	for (unsigned i = 0; i < work->count; i++)
		work->items[i].is_hopeless |=
			work->items[i].gain && !compare_gains(&work->items[i], best);
	(void)try_patch(work, &best->candidate.patch, false);
	mismatch_log_add_gone(&work->without, &work->with, &work->unclear);
}

/* The best hypothesis, if there is one and no rival is as good; NULL otherwise. */
static struct hypothesis *choose(struct work *work)
{
	struct hypothesis *best = NULL;
	unsigned tried = 0;
	bool is_tied = false;

	for (unsigned i = 0; i < work->count && tried < TRIED && work->insns; i++) {
		struct hypothesis *hypothesis = &work->items[i];
		int order;

		hypothesis->gain = 0;
		if (hypothesis->is_hopeless || !hypothesis->times ||
		    hypothesis->tried > work->lessons)
			continue;
		tried++;
		if (!weigh(work, hypothesis)) {
			hypothesis->tried = work->lessons + 1;
			continue;
		}
		order = best ? compare_gains(hypothesis, best) : -1;
		is_tied = !order || (is_tied && order > 0);
		if (order <= 0)
			best = hypothesis;
	}
	work->lessons += best != NULL;
	if (is_tied)
		give_up(work, best);
	return is_tied ? NULL : best;
}

/* See what might explain the disagreements that there are with the patches that are known. */
static void ask(struct work *work)
{
	work->candidates.count = work->candidates.asked = 0;
	run_without(work, true);
	work->inference->is_wrong = work->without.against > work->bytes / WRONG_BYTES;
	gather(work);
}

static void learn(struct work *work)
{
	unsigned failed = 0;

	ask(work);
	while (failed < FAILED_MAX && work->insns && work->known.count < FLOW_PATCHES - 1 &&
	       work->candidates.asked) {
		struct hypothesis *best = choose(work);

		if (best) {
			work->known.items[work->known.count++] = best->candidate.patch;
			ask(work);
		} else {
			failed++;
		}
	}
}

/* A right patch is also right beside all others that are known: drop those that are not. Returns
 * whether none was dropped. */
static bool check(struct work *work)
{
	struct flow_patches *known = &work->known;
	unsigned count = known->count;

	work->lessons++;
	for (unsigned i = 0; i < count; i++) {
		struct flow_patch patch = known->items[0];
		struct mismatch_verdict verdict;
		struct hypothesis *hypothesis = find_hypothesis(work, &patch);

		known->count--;
		memmove(known->items, known->items + 1, known->count * sizeof(*known->items));
		run_without(work, false);
		verdict = try_patch(work, &patch, false);
		if (!is_good(&verdict, &hypothesis->candidate, AGAINST_AT_LAST)) {
			hypothesis->is_hopeless = true;
			continue;
		}
		set_times(work, &verdict, &patch);
		known->items[known->count++] = patch;
	}
	return known->count == count;
}

/* Whether the kernel's code disagrees with packets of a segment, without patches. */
static bool disagrees(struct work *work, const struct sample_segment *item, bool is_noting)
{
	bool goes_on = true, found = false;

	begin(&(struct pass){ .work = work, .is_noting = is_noting }, item);
	while (goes_on && !found) {
		goes_on = run(work);
		for (uint32_t i = 0; i < work->batch.count; i++)
			found |= work->batch.items[i].kind == FLOW_GAP &&
				 work->batch.items[i].count == GAP_MISMATCH &&
				 work->batch.items[i + 1].value >> 63;
	}
	return found;
}

/* Of the segments that are not at odds some will do, and those next to others: they show since and
 * until when the code was as copied. Returns whether there are others. */
static bool thin_out(struct work *work)
{
	struct sample_segment *items = work->sample.items;
	size_t count = 0, odds = 0, step = 1 + work->sample.count / OTHERS;
	bool was_at_odds = false, was_kept = true;

	work->bytes = 0;
	for (size_t i = 0; i < work->sample.count; i++) {
		struct sample_segment item = items[i];
		bool is_at_odds = disagrees(work, &item, true);

		if (is_at_odds && !was_kept)
			items[count++] = items[i - 1];
		was_kept = is_at_odds || was_at_odds || i % step == 0;
		if (was_kept)
			items[count++] = item;
		was_at_odds = is_at_odds;
		odds += is_at_odds;
		work->bytes += item.segment.to - item.segment.from;
	}
	work->sample.count = count;
	return odds;
}

static struct work *work_new(struct patch_inference *inference, uint64_t bytes)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->inference = inference;
	work->insns = INSNS_MAX;
	code_init(&work->code, inference->machines);
	(void)sample_segments_read(inference, bytes, &work->sample);
	return work;
}

static void work_free(struct work *work)
{
	sample_segments_free(&work->sample);
	mismatch_log_free(&work->without);
	mismatch_log_free(&work->with);
	mismatch_log_free(&work->unclear);
	code_free(&work->code);
	free(work);
}

static void infer(struct patch_inference *inference)
{
	struct work *work = work_new(inference, LEARN_BYTES);

	if (!work)
		return;
	for (unsigned i = 0; i < LEARNED_MAX && (i || thin_out(work)); i++) {
		learn(work);
		if (check(work))
			break;
	}
	memcpy(inference->patches.items, work->known.items, sizeof(work->known.items));
	inference->patches.count = work->known.count;
	work_free(work);
}

/* Whether the code disagrees anywhere with a sample of the trace, so that it pays to learn. */
static bool has_something_to_learn(struct patch_inference *inference)
{
	struct work *work = work_new(inference, LOOK_BYTES);
	bool found = false;

	if (!work)
		return false;
	for (size_t i = 0; i < work->sample.count && !found; i++)
		found = disagrees(work, &work->sample.items[i], false);
	work_free(work);
	return found;
}

const struct flow_patches *patch_inference_get(struct patch_inference *inference)
{
	(void)pthread_mutex_lock(&inference->lock);
	if (!inference->is_done)
		infer(inference);
	inference->is_done = true;
	(void)pthread_mutex_unlock(&inference->lock);
	return &inference->patches;
}

static bool is_needed(struct patch_inference *inference)
{
	bool ret;

	(void)pthread_mutex_lock(&inference->lock);
	if (!inference->is_begun)
		inference->is_needed = has_something_to_learn(inference);
	inference->is_begun = true;
	ret = inference->is_needed;
	(void)pthread_mutex_unlock(&inference->lock);
	return ret;
}

/* What was inferred for a flow that does not have it yet; NULL: nothing. */
static const struct flow_patches *inform(struct pt_flow *flow)
{
	const struct flow_patches *patches = patch_inference_get(flow->where.inference);

	flow->learned.is_informed = true;
	if (flow->where.inference->is_wrong)
		flow_patch_expect_little(flow);
	return patches->count ? patches : NULL;
}

void patch_inference_begin(struct flow_run *run, struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	const struct flow_patches *patches;

	flow->learned.met_kernel = true;
	if (flow->learned.is_informed || !is_needed(flow->where.inference))
		return;
	patches = inform(flow);
	if (!patches)
		return;
	flow_mark_set(run, mark);
	flow_mark_return(run, mark, patches);
	flow_mark_set(run, mark);
}

const struct return_sites *patch_inference_returns(struct patch_inference *inference)
{
	(void)patch_inference_get(inference);
	return &inference->returns;
}

bool patch_inference_apply(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	const struct flow_patches *patches;

	if (!flow->where.inference || flow->learned.is_informed)
		return false;
	patches = inform(flow);
	if (!patches)
		return false;
	flow->disagrees = false;
	flow_mark_return(run, mark, patches);
	return true;
}
