#include "decode/patch_inference.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/flow_patch.h"
#include "decode/mismatch_log.h"
#include "decode/patch_search.h"

enum {
	SAMPLE_BYTES = 2 << 20,   /* of trace, shared by the queues */
	LEAST_BYTES = 64 << 10,   /* of each */
	SEGMENT_BYTES = 64 << 10, /* of trace, at least */
	INSNS_MAX = 1 << 29,      /* followed in all, about */
	HYPOTHESES = 64,          /* kept */
	TRIED = 20,               /* of them in one round */
	FAILED_MAX = 6,           /* rounds that end without a patch */
	LEAST_GAIN = 5,           /* places that a patch must explain: more than chance does; */
	KNOWN_GAIN = 2,           /* one that a later copy has; */
	LIMITED_GAIN = 20,        /* one that was in force for a part of the time only */
	AGAINST = 16,             /* places that it explains, for each one against it; */
	AGAINST_AT_LAST = 64,     /* the same in the check at the end; */
	ODD = 8,                  /* the same for each one with odd branches only */
	LEARNED_MAX = 4,          /* times that all patches are checked */
	WRONG_BYTES = 1 << 10,    /* of trace for each mismatch: with fewer, the copy is wrong */
	HOPELESS = 1000, /* mismatches more than before: a patch that need not be compared */
};

struct hypothesis {
	struct patch_candidate candidate;
	unsigned times; /* that it was found in this round */
	int64_t gain; /* places that it explains, less those against it; 0: it is not good enough */
	bool is_hopeless; /* a rival explains as much, or the check spoke against it */
};

struct work {
	struct patch_inference *inference;
	struct code code;
	struct flow_patches known;
	struct hypothesis items[HYPOTHESES];
	unsigned count;
	struct pt_flow flow;
	struct flow_batch batch;
	struct patch_candidates candidates;
	struct mismatch_log without, with;
	struct mismatch_log unclear; /* what several patches explain */
	uint64_t insns;              /* that may still be followed */
	uint64_t bytes;              /* of the sample, so far in the present run */
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
	(void)pthread_mutex_destroy(&inference->lock);
}

/* One run through the sample, with the patches that are known. */
struct pass {
	struct work *work;
	struct mismatch_log *log; /* of it */
	bool is_asking;           /* what might explain the disagreements, too */
	bool is_quick;            /* segments that are not at odds `without` stay as they are */
	size_t most;              /* events; with more, it need not come to the end */
};

static void run_segment(const struct pass *pass, const struct inference_source *source,
			const struct pt_segment *segment)
{
	struct work *work = pass->work;
	struct flow_code where = source->where;
	struct pt_flow *flow = &work->flow;
	int r = 0;

	where.code = &work->code;
	where.inference = NULL;
	where.candidates = pass->is_asking ? &work->candidates : NULL;
	where.log = pass->log;
	pt_flow_init(flow, segment, work->inference->config, &where, true);
	if (!pass->is_asking)
		flow->patches.work = 0;
	memcpy(flow->patches.items, work->known.items, sizeof(flow->patches.items));
	flow->patches.count = work->known.count;
	work->batch.room = FLOW_BATCH;
	while (!r) {
		r = pt_flow_run(flow, &work->batch);
		if (!code_is_full(&work->code))
			continue;
		flow->block = NULL;
		code_trim(&work->code);
	}
	work->insns -= flow->insns < work->insns ? flow->insns : work->insns;
}

static bool is_at_odds(const struct pass *pass, const struct pt_segment *segment)
{
	return mismatch_log_is_at_odds(&pass->work->without, pass->log->source, segment->from,
				       segment->to);
}

/* The first `bytes` of a queue, about. */
static void run_source(const struct pass *pass, const struct inference_source *source,
		       uint64_t bytes)
{
	const struct patch_inference *inference = pass->work->inference;
	struct pt_segment segment;
	struct pt_walk walk;

	pt_walk_init(&walk, source->queue, inference->config, &inference->offsets, SEGMENT_BYTES);
	while (bytes && pass->log->count <= pass->most && !pt_walk_next(&walk, &segment)) {
		uint64_t size = segment.to - segment.from;

		mismatch_log_add(pass->log, (struct mismatch){ .kind = MISMATCH_FOUND,
							       .position = segment.from,
							       .time = segment.clock.now });
		if (pass->is_quick && !is_at_odds(pass, &segment))
			mismatch_log_add_from(pass->log, &pass->work->without, segment.from,
					      segment.to);
		else
			run_segment(pass, source, &segment);
		pass->work->bytes += size;
		bytes = bytes > size ? bytes - size : 0;
	}
}

static void run_sample(const struct pass *pass)
{
	const struct patch_inference *inference = pass->work->inference;
	size_t count = inference->sources.count;
	uint64_t bytes = SAMPLE_BYTES / (count ? count : 1);

	if (bytes < LEAST_BYTES)
		bytes = LEAST_BYTES;
	mismatch_log_clear(pass->log);
	pass->work->bytes = 0;
	for (size_t i = 0; i < count && pass->log->count <= pass->most; i++) {
		pass->log->source = (uint32_t)i;
		run_source(pass, &inference->sources.items[i], bytes);
	}
}

/* See where packets and code disagree with the patches that are known, and with `is_asking` what
 * might explain it. */
static void run_without(struct work *work, bool is_asking)
{
	run_sample(&(struct pass){ work, &work->without, is_asking, false, SIZE_MAX });
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
	run_sample(&(struct pass){ work, &work->with, false, is_quick, most });
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
	unsigned least = is_limited && !candidate->is_known ? LIMITED_GAIN : least_gain(candidate);

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
	patch->since = verdict.since;
	patch->until = verdict.until;
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
		if (hypothesis->is_hopeless || !hypothesis->times)
			continue;
		tried++;
		if (!weigh(work, hypothesis))
			continue;
		order = best ? compare_gains(hypothesis, best) : -1;
		is_tied = !order || (is_tied && order > 0);
		if (order <= 0)
			best = hypothesis;
	}
	if (is_tied)
		give_up(work, best);
	return is_tied ? NULL : best;
}

static void learn(struct work *work)
{
	unsigned failed = 0;

	while (failed < FAILED_MAX && work->insns && work->known.count < FLOW_PATCHES - 1) {
		struct hypothesis *best;

		work->candidates.count = work->candidates.asked = 0;
		run_without(work, true);
		work->inference->is_wrong = work->without.against > work->bytes / WRONG_BYTES;
		if (!work->candidates.asked)
			return;
		gather(work);
		best = choose(work);
		if (best)
			work->known.items[work->known.count++] = best->candidate.patch;
		else
			failed++;
	}
}

/* A right patch is also right beside all others that are known: drop those that are not. Returns
 * whether none was dropped. */
static bool check(struct work *work)
{
	struct flow_patches *known = &work->known;
	unsigned count = known->count;

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
		patch.since = verdict.since;
		patch.until = verdict.until;
		known->items[known->count++] = patch;
	}
	return known->count == count;
}

static void infer(struct patch_inference *inference)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return;
	work->inference = inference;
	work->insns = INSNS_MAX;
	code_init(&work->code, inference->machines);
	for (unsigned i = 0; i < LEARNED_MAX; i++) {
		learn(work);
		if (check(work))
			break;
	}
	memcpy(inference->patches.items, work->known.items, sizeof(work->known.items));
	inference->patches.count = work->known.count;
	mismatch_log_free(&work->without);
	mismatch_log_free(&work->with);
	mismatch_log_free(&work->unclear);
	code_free(&work->code);
	free(work);
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

bool patch_inference_apply(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	const struct flow_patches *patches;

	if (!flow->where.inference || flow->is_informed)
		return false;
	flow->is_informed = true;
	patches = patch_inference_get(flow->where.inference);
	if (flow->where.inference->is_wrong)
		flow_patch_expect_little(flow);
	if (!patches->count)
		return false;
	flow->disagrees = false;
	flow_mark_return(run, mark, patches);
	return true;
}
