#include "decode/flow/patch_inference.h"

#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow_patch.h"
#include "decode/flow/patch_hypotheses.h"
#include "decode/flow/sample_run.h"
#include "decode/flow/sample_survey.h"

enum {
	LEARN_BYTES = 4 << 20,   /* of trace in all queues to learn from, or a sample of so much */
	LOOK_BYTES = 512 << 10,  /* the same to see whether there is anything to learn */
	INSNS_MAX = 1 << 28,     /* followed in all to learn: up to some seconds */
	TRIED = 20,              /* of them in one round */
	FAILED_MAX = 6,          /* rounds that end without a patch */
	LEAST_GAIN = 5,          /* places that a patch must explain: more than chance does; */
	KNOWN_GAIN = 2,          /* one that a later copy has; */
	LIMITED_GAIN = 20,       /* one that was in force for a part of the time only, */
	LIMITED_GROUP_GAIN = 10, /* or many at once */
	AGAINST = 16,            /* places that it explains, for each one against it; */
	AGAINST_AT_LAST = 64,    /* the same in the check at the end; */
	ODD = 8,                 /* the same for each one with odd branches only */
	LEARNED_MAX = 4,         /* times that all patches are checked */
	WRONG_BYTES = 1 << 10,   /* of trace for each mismatch: with fewer, the copy is wrong */
	HOPELESS = 8000, /* mismatches more than before: a patch that need not be compared */
};

struct work {
	struct patch_inference *inference;
	struct sample_run run;
	struct flow_patches known;
	struct patch_hypotheses hypotheses;
	unsigned lessons; /* how often what is known, or unclear, has changed */
	struct patch_candidates candidates;
	bool is_last_new; /* the last of `known` was learned since they were checked */
	bool is_begun;    /* `without` is of the patches that are known */
	struct mismatch_log without, with, other;
	struct mismatch_log best;    /* with the best hypothesis of the round so far */
	struct mismatch_log unclear; /* what several patches explain */
	uint64_t bytes;              /* of the sample, before some was left out */
};

void patch_inference_init(struct patch_inference *inference, const struct pt_config *config,
			  const struct machines *machines, const struct pt_offsets *offsets)
{
	*inference = (struct patch_inference){
		.sources = { .config = config, .machines = machines, .offsets = *offsets }
	};
	(void)pthread_mutex_init(&inference->lock, NULL);
}

void patch_inference_free(struct patch_inference *inference)
{
	if (!inference->sources.config)
		return;
	trace_sources_free(&inference->sources);
	return_sites_free(&inference->returns);
	(void)pthread_mutex_destroy(&inference->lock);
}

static void swap(struct mismatch_log *a, struct mismatch_log *b)
{
	struct mismatch_log log = *a;

	*a = *b;
	*b = log;
}

/* The patch, in force all the time. */
static struct flow_patch always(const struct flow_patch *patch)
{
	struct flow_patch ret = *patch;

	ret.since = 0;
	ret.until = UINT64_MAX;
	return ret;
}

/* See where packets and code disagree with the patches that are known, since `patch` has become one
 * of them or is none any more, at the time that it has; NULL: there is none. */
static void run_without(struct work *work, const struct flow_patch *patch,
			struct patch_candidates *candidates, bool is_noting)
{
	sample_run_pass(&work->run,
			&(struct sample_pass){ .patches = &work->known,
					       .patch = patch,
					       .base = work->is_begun ? &work->without : NULL,
					       .candidates = candidates,
					       .is_noting = is_noting,
					       .most = SIZE_MAX },
			&work->other);
	swap(&work->without, &work->other);
	work->is_begun = true;
}

/* See where they disagree with one more patch, in some of the segments or all. */
static void run_with(struct work *work, const struct patch_candidate *candidate,
		     enum sample_which which, const struct mismatch_log *base)
{
	struct flow_patches *known = &work->known;
	struct flow_patch *patch = &known->items[known->count++];

	*patch = always(&candidate->patch);
	sample_run_pass(&work->run,
			&(struct sample_pass){ .patches = known,
					       .patch = patch,
					       .base = base,
					       .which = which,
					       .segment = candidate->segment,
					       .odds = &work->without,
					       .most = 2 * work->without.count + HOPELESS },
			&work->other);
	swap(&work->with, &work->other);
	known->count--;
}

/* Compare the sample with one more patch with that in `work->without`. */
static struct mismatch_verdict judge(struct work *work)
{
	struct mismatch_verdict verdict = { 0 };

	if (work->with.count <= 2 * work->without.count + HOPELESS &&
	    mismatch_log_compare(&work->without, &work->with, &work->unclear, &verdict))
		verdict = (struct mismatch_verdict){ 0 };
	return verdict;
}

static struct mismatch_verdict try_all(struct work *work, const struct patch_candidate *candidate)
{
	run_with(work, candidate, SAMPLE_ALL, &work->without);
	return judge(work);
}

static unsigned least_gain(const struct patch_candidate *candidate)
{
	return candidate->is_known ? KNOWN_GAIN : LEAST_GAIN;
}

static bool is_good(const struct mismatch_verdict *verdict, const struct patch_candidate *candidate,
		    unsigned against)
{
	bool is_limited = verdict->since || verdict->until != UINT64_MAX;
	bool is_group = patch_change_is_group(&candidate->patch.change);
	unsigned least = least_gain(candidate);

	if (is_limited && !candidate->is_known)
		least = is_group ? LIMITED_GROUP_GAIN : LIMITED_GAIN;

	return verdict->gone >= least && verdict->against <= verdict->gone / against &&
	       verdict->odd <= verdict->gone / ODD;
}

/* Put a patch in force at the time of the verdict. Where the sample has nothing to say, that is no
 * longer than it must be: from the beginning of a segment to that of another. */
static void set_times(const struct work *work, const struct mismatch_verdict *verdict,
		      struct flow_patch *patch)
{
	patch->since = verdict->since;
	patch->until = verdict->until;
	for (size_t i = 0; i < work->run.segments.count; i++) {
		uint64_t time = work->run.segments.items[i].segment.clock.now;

		if (patch->since && time > patch->since && time <= verdict->first)
			patch->since = time;
		if (patch->until != UINT64_MAX && time > verdict->last && time < patch->until)
			patch->until = time;
	}
}

/* Try a hypothesis on the sample. Returns whether it may be right. */
static bool weigh(struct work *work, struct patch_hypothesis *hypothesis)
{
	const struct patch_candidate *candidate = &hypothesis->candidate;
	struct mismatch_verdict verdict;

	/* many explain a place by chance, and no more: that shows where they should */
	run_with(work, candidate, SAMPLE_NEAR, &work->without);
	verdict = judge(work);
	if (verdict.gone < least_gain(candidate) && verdict.gone <= hypothesis->own)
		return false;
	run_with(work, candidate, SAMPLE_ODDS, &work->with);
	if (judge(work).gone < least_gain(candidate))
		return false;
	run_with(work, candidate, SAMPLE_OTHERS, &work->with);
	verdict = judge(work);
	if (!is_good(&verdict, candidate, AGAINST))
		return false;
	hypothesis->verdict = verdict;
	hypothesis->gain = (int64_t)verdict.gone - verdict.against - verdict.odd;
	set_times(work, &verdict, &hypothesis->candidate.patch);
	return true;
}

/* Several hypotheses do equally well: none of them is taken, and what they explain counts no more
 * for others. */
static void give_up(struct work *work, const struct patch_hypothesis *best)
{
	for (size_t i = 0; i < work->hypotheses.count; i++) {
		struct patch_hypothesis *rival = &work->hypotheses.items[i];

		rival->is_hopeless |= rival->gain && !patch_hypothesis_compare(rival, best);
	}
	(void)try_all(work, &best->candidate);
	mismatch_log_add_gone(&work->without, &work->with, &work->unclear);
}

/* Try the first hypotheses where they were found: most explain nothing, not even there. If none of
 * them is good, that was in vain until more is known. */
static void try_own(struct work *work)
{
	unsigned tried = 0;

	for (size_t i = 0; i < work->hypotheses.count && tried < TRIED && work->run.insns; i++) {
		struct patch_hypothesis *hypothesis = &work->hypotheses.items[i];

		if (hypothesis->is_hopeless || !hypothesis->times ||
		    hypothesis->tried > work->lessons)
			continue;
		tried++;
		hypothesis->tried = work->lessons + 1;
		run_with(work, &hypothesis->candidate, SAMPLE_ONE, &work->without);
		hypothesis->own = judge(work).gone;
	}
}

/* Of the hypotheses that are left the one that explains most where it was found; NULL: none is. */
static struct patch_hypothesis *most_promising(struct work *work)
{
	struct patch_hypothesis *best = NULL;

	for (size_t i = 0; i < work->hypotheses.count && work->run.insns; i++) {
		struct patch_hypothesis *hypothesis = &work->hypotheses.items[i];

		if (hypothesis->own > (best ? best->own : 0))
			best = hypothesis;
	}
	return best;
}

/* Whether the best hypothesis so far explains more where another was found, and all that this does:
 * then this one can wait until that is known. A try of all segments takes long. */
static bool can_wait(struct work *work, const struct patch_hypothesis *hypothesis)
{
	struct mismatch_verdict verdict = { 0 };

	run_with(work, &hypothesis->candidate, SAMPLE_ONE, &work->best);
	return !mismatch_log_compare(&work->with, &work->best, &work->unclear, &verdict) &&
	       verdict.gone && !verdict.against && !verdict.odd && !verdict.since &&
	       verdict.until == UINT64_MAX;
}

/* Whether a hypothesis that explains as many places as the best so far explains others: it is no
 * rival, and will be the best once that is known. */
static bool is_about_others(struct work *work, const struct patch_hypothesis *hypothesis)
{
	struct mismatch_verdict verdict = { 0 };

	return !mismatch_log_compare(&work->best, &work->with, &work->unclear, &verdict) &&
	       2 * verdict.gone > hypothesis->gain;
}

/* The best hypothesis, if there is one and no rival is as good; NULL otherwise. */
static struct patch_hypothesis *choose(struct work *work)
{
	struct patch_hypothesis *best = NULL, *hypothesis;
	bool is_tied = false;

	try_own(work);
	for (; (hypothesis = most_promising(work)); hypothesis->own = 0) {
		int order;

		if ((best && can_wait(work, hypothesis)) || !weigh(work, hypothesis))
			continue;
		order = best ? patch_hypothesis_compare(hypothesis, best) : -1;
		if (!order && is_about_others(work, hypothesis)) {
			hypothesis->gain = 0;
			continue;
		}
		is_tied = !order || (is_tied && order > 0);
		if (order > 0)
			continue;
		best = hypothesis;
		swap(&work->best, &work->with);
	}
	work->lessons += best != NULL;
	if (is_tied)
		give_up(work, best);
	return is_tied ? NULL : best;
}

/* See what might explain the disagreements that there are since a patch is known, or NULL. */
static void ask(struct work *work, const struct flow_patch *patch)
{
	patch_candidates_clear(&work->candidates);
	run_without(work, patch, &work->candidates, true);
	work->inference->is_wrong =
		mismatch_log_against(&work->without) > work->bytes / WRONG_BYTES;
	patch_hypotheses_gather(&work->hypotheses, &work->candidates);
}

static void learn(struct work *work)
{
	const struct flow_patch *learned = NULL;
	unsigned failed = 0;

	while (failed < FAILED_MAX && work->run.insns && !flow_patches_are_full(&work->known)) {
		struct patch_hypothesis *best;

		ask(work, learned);
		learned = NULL;
		if (!work->candidates.asked)
			return;
		best = choose(work);
		failed += best == NULL;
		if (!best)
			continue;
		work->known.items[work->known.count++] = best->candidate.patch;
		learned = &work->known.items[work->known.count - 1];
		work->is_last_new = true;
	}
	if (learned)
		run_without(work, learned, NULL, true);
}

/* See what one of the known patches, the last, does beside all others. It is in force before and,
 * unless it explains nothing, afterwards. */
static struct mismatch_verdict try_last(struct work *work, struct patch_hypothesis *hypothesis)
{
	struct flow_patches *known = &work->known;
	struct flow_patch *patch = &known->items[known->count - 1];
	const struct flow_patch before = *patch, anytime = always(patch);
	struct mismatch_verdict verdict;

	known->count--;
	run_without(work, patch, NULL, false);
	swap(&work->best, &work->other); /* the run with it, at the time that it had */
	verdict = try_all(work, &hypothesis->candidate);
	known->items[known->count++] = hypothesis->candidate.patch;
	if (!verdict.gone) /* the run with it may have ended early, and tell of few segments */
		return verdict;
	set_times(work, &verdict, patch);
	if (patch->since == before.since && patch->until == before.until) {
		swap(&work->without, &work->best);
		return verdict;
	}
	swap(&work->without, &work->with);
	if (patch->since || patch->until != UINT64_MAX)
		run_without(work, &anytime, NULL, true);
	return verdict;
}

/* Whether a patch that was found good is so beside all others that are known. These may explain
 * most of what it did: one that nothing speaks against stays if anything is left. */
static bool is_still_good(const struct mismatch_verdict *verdict,
			  const struct patch_candidate *candidate)
{
	if (!verdict->against && !verdict->odd)
		return verdict->gone >= KNOWN_GAIN;
	return is_good(verdict, candidate, AGAINST_AT_LAST);
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
		const struct flow_patch anytime = always(&patch);
		struct patch_hypothesis *hypothesis =
			patch_hypotheses_find(&work->hypotheses, &patch);
		struct mismatch_verdict verdict = hypothesis->verdict;

		memmove(known->items, known->items + 1, (known->count - 1) * sizeof(*known->items));
		known->items[known->count - 1] = patch;
		/* what was learned last was tried beside all others */
		if (i + 1 < count || known->count < count || !work->is_last_new)
			verdict = try_last(work, hypothesis);
		if (is_still_good(&verdict, &hypothesis->candidate))
			continue;
		hypothesis->is_hopeless = true;
		known->count--;
		run_without(work, &anytime, NULL, true);
	}
	work->is_last_new = false;
	return known->count == count;
}

static void work_free(struct work *work)
{
	sample_run_free(&work->run);
	mismatch_log_free(&work->without);
	mismatch_log_free(&work->with);
	mismatch_log_free(&work->other);
	mismatch_log_free(&work->best);
	mismatch_log_free(&work->unclear);
	patch_candidates_free(&work->candidates);
	patch_hypotheses_free(&work->hypotheses);
	free(work);
}

static void infer(struct patch_inference *inference)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return;
	work->inference = inference;
	(void)sample_run_init(inference, LEARN_BYTES, INSNS_MAX, &work->run);
	for (unsigned i = 0;
	     i < LEARNED_MAX && (i || sample_survey_thin_out(&work->run, &work->bytes)); i++) {
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
	struct sample_run *run = calloc(1, sizeof(*run));
	bool found = false;

	if (!run)
		return false;
	(void)sample_run_init(inference, LOOK_BYTES, 0, run);
	for (size_t i = 0; i < run->segments.count && !found; i++)
		found = sample_run_disagrees(run, i, false);
	sample_run_free(run);
	free(run);
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
