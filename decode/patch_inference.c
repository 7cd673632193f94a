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
	CANDIDATES = 64,
	TRIED = 20,           /* of them at a time */
	FAILED_MAX = 6,       /* times that nothing is learned */
	LEAST_GAIN = 5,       /* places that a patch explains: more than chance does */
	AGAINST = 16,         /* for so many that it explains one may speak against it, */
	AGAINST_AT_LAST = 64, /* or for so many, when the others are known, */
	ODD = 8,              /* or another one by odd branches only */
	KNOWN_GAIN = 2,       /* of one that a later copy has */
	LIMITED_GAIN = 20,    /* the same where it was not so all the time */
	LEARNED_MAX = 4,      /* times that what was learned before is looked at again */
	HOPELESS = 1000,      /* more places at odds than before, whatever the time */
};

struct candidate {
	struct patch_idea idea;
	unsigned times; /* that it explained something, this time */
	int64_t gain; /* places that it explains, less those that it does not; 0: it will not do */
	bool is_hopeless; /* another explains as much, or what is known by now speaks against it */
};

struct course {
	struct patch_lessons *lessons;
	struct code code;
	struct flow_patches known;
	struct candidate items[CANDIDATES];
	unsigned count;
	struct pt_flow flow;
	struct flow_batch batch;
	struct patch_ideas ideas;
	struct patch_trail without, with;
	struct patch_trail unclear; /* what several patches explain */
	uint64_t insns;             /* that may still be followed */
};

void patch_lessons_init(struct patch_lessons *lessons, const struct pt_config *config,
			const struct machines *machines, const struct pt_offsets *offsets)
{
	*lessons = (struct patch_lessons){ .config = config,
					   .machines = machines,
					   .offsets = *offsets };
	(void)pthread_mutex_init(&lessons->lock, NULL);
}

int patch_lessons_add(struct patch_lessons *lessons, const struct aux_queue *queue,
		      const struct flow_code *where)
{
	struct lesson_source source = { queue, *where };

	return vec_push(&lessons->sources, source) ? 0 : -PTVM_NO_MEMORY;
}

void patch_lessons_free(struct patch_lessons *lessons)
{
	if (!lessons->config)
		return;
	vec_free(&lessons->sources);
	(void)pthread_mutex_destroy(&lessons->lock);
}

/* One run through the sample, with the patches that are known. */
struct pass {
	struct course *course;
	struct patch_trail *trail; /* of it */
	bool is_asking;            /* what might explain the disagreements, too */
	size_t most;               /* events; with more, it need not come to the end */
};

static void run_segment(const struct pass *pass, const struct lesson_source *source,
			const struct pt_segment *segment)
{
	struct course *course = pass->course;
	struct flow_code where = source->where;
	struct pt_flow *flow = &course->flow;
	int r = 0;

	where.code = &course->code;
	where.lessons = NULL;
	where.ideas = pass->is_asking ? &course->ideas : NULL;
	where.trail = pass->trail;
	patch_trail_note(pass->trail, (struct trail_event){ .kind = TRAIL_BEGIN,
							    .position = segment->from,
							    .time = segment->clock.now });
	pt_flow_init(flow, segment, course->lessons->config, &where, true);
	if (!pass->is_asking)
		flow->patches.work = 0;
	memcpy(flow->patches.items, course->known.items, sizeof(flow->patches.items));
	flow->patches.count = course->known.count;
	course->batch.room = FLOW_BATCH;
	while (!r) {
		r = pt_flow_run(flow, &course->batch);
		if (!code_is_full(&course->code))
			continue;
		flow->block = NULL;
		code_trim(&course->code);
	}
	course->insns -= flow->insns < course->insns ? flow->insns : course->insns;
}

/* The first `bytes` of a queue, about. */
static void run_source(const struct pass *pass, const struct lesson_source *source, uint64_t bytes)
{
	const struct patch_lessons *lessons = pass->course->lessons;
	struct pt_segment segment;
	struct pt_walk walk;

	pt_walk_init(&walk, source->queue, lessons->config, &lessons->offsets, SEGMENT_BYTES);
	while (bytes && pass->trail->count <= pass->most && !pt_walk_next(&walk, &segment)) {
		uint64_t size = segment.to - segment.from;

		run_segment(pass, source, &segment);
		bytes = bytes > size ? bytes - size : 0;
	}
}

static void run_sample(const struct pass *pass)
{
	const struct patch_lessons *lessons = pass->course->lessons;
	size_t count = lessons->sources.count;
	uint64_t bytes = SAMPLE_BYTES / (count ? count : 1);

	if (bytes < LEAST_BYTES)
		bytes = LEAST_BYTES;
	patch_trail_clear(pass->trail);
	for (size_t i = 0; i < count && pass->trail->count <= pass->most; i++) {
		pass->trail->source = (uint32_t)i;
		run_source(pass, &lessons->sources.items[i], bytes);
	}
}

/* See where packets and code disagree with the patches that are known, and with `is_asking` what
 * might explain it. */
static void run_without(struct course *course, bool is_asking)
{
	run_sample(&(struct pass){ course, &course->without, is_asking, SIZE_MAX });
}

static struct candidate *find_candidate(struct course *course, const struct flow_patch *patch)
{
	for (unsigned i = 0; i < course->count; i++) {
		if (flow_patch_is_same(&course->items[i].idea.patch, patch))
			return &course->items[i];
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->times != right->times)
		return left->times > right->times ? -1 : 1;
	if (left->idea.is_known != right->idea.is_known)
		return left->idea.is_known ? -1 : 1;
	return (left->idea.unlikely > right->idea.unlikely) -
	       (left->idea.unlikely < right->idea.unlikely);
}

/* Ask what might explain the disagreements there are. */
static void gather(struct course *course)
{
	for (unsigned i = 0; i < course->count; i++)
		course->items[i].times = 0;
	for (unsigned i = 0; i < course->ideas.count; i++) {
		const struct patch_idea *idea = &course->ideas.items[i];
		struct candidate *candidate = find_candidate(course, &idea->patch);

		if (!candidate && course->count < CANDIDATES) {
			candidate = &course->items[course->count++];
			*candidate = (struct candidate){ .idea = *idea };
		}
		if (candidate)
			candidate->times++;
	}
	qsort(course->items, course->count, sizeof(*course->items), compare);
}

/* How the sample speaks of one more patch, beside what is in `course->without`. */
static struct trail_verdict try_patch(struct course *course, const struct flow_patch *patch)
{
	struct flow_patches *known = &course->known;
	size_t most = 2 * course->without.count + HOPELESS;
	struct trail_verdict verdict;

	known->items[known->count] = *patch;
	known->items[known->count].since = 0;
	known->items[known->count++].until = UINT64_MAX;
	run_sample(&(struct pass){ course, &course->with, false, most });
	known->count--;
	if (course->with.count > most ||
	    patch_trail_compare(&course->without, &course->with, &course->unclear, &verdict))
		verdict = (struct trail_verdict){ 0 };
	return verdict;
}

static bool is_good(const struct trail_verdict *verdict, const struct patch_idea *idea,
		    unsigned against)
{
	bool is_limited = verdict->since || verdict->until != UINT64_MAX;
	unsigned least = idea->is_known ? KNOWN_GAIN : is_limited ? LIMITED_GAIN : LEAST_GAIN;

	return verdict->gone >= least && verdict->against <= verdict->gone / against &&
	       verdict->odd <= verdict->gone / ODD;
}

/* Below 0: more speaks for `a`. */
static int compare_gains(const struct candidate *a, const struct candidate *b)
{
	if (a->gain != b->gain)
		return a->gain > b->gain ? -1 : 1;
	if (a->idea.is_known != b->idea.is_known)
		return a->idea.is_known ? -1 : 1;
	return (a->idea.unlikely > b->idea.unlikely) - (a->idea.unlikely < b->idea.unlikely);
}

/* See what speaks for a candidate. Returns whether it might be right. */
static bool weigh(struct course *course, struct candidate *candidate)
{
	struct flow_patch *patch = &candidate->idea.patch;
	struct trail_verdict verdict = try_patch(course, patch);

	if (!is_good(&verdict, &candidate->idea, AGAINST))
		return false;
	candidate->gain = (int64_t)verdict.gone - verdict.against - verdict.odd;
	patch->since = verdict.since;
	patch->until = verdict.until;
	return true;
}

/* Several do equally well, so that none of them is known to be right, nor what explains less of the
 * same. */
static void give_up(struct course *course, const struct candidate *best)
{
	for (unsigned i = 0; i < course->count; i++)
		course->items[i].is_hopeless |=
			course->items[i].gain && !compare_gains(&course->items[i], best);
	(void)try_patch(course, &best->idea.patch);
	patch_trail_note_gone(&course->without, &course->with, &course->unclear);
}

/* The candidate for which most speaks, if that is clear; NULL when there is none. */
static struct candidate *choose(struct course *course)
{
	struct candidate *best = NULL;
	unsigned tried = 0;
	bool is_tied = false;

	for (unsigned i = 0; i < course->count && tried < TRIED && course->insns; i++) {
		struct candidate *candidate = &course->items[i];
		int order;

		candidate->gain = 0;
		if (candidate->is_hopeless || !candidate->times)
			continue;
		tried++;
		if (!weigh(course, candidate))
			continue;
		order = best ? compare_gains(candidate, best) : -1;
		is_tied = !order || (is_tied && order > 0);
		if (order <= 0)
			best = candidate;
	}
	if (is_tied)
		give_up(course, best);
	return is_tied ? NULL : best;
}

static void learn(struct course *course)
{
	unsigned failed = 0;

	while (failed < FAILED_MAX && course->insns && course->known.count < FLOW_PATCHES - 1) {
		struct candidate *best;

		course->ideas.count = course->ideas.asked = 0;
		run_without(course, true);
		if (!course->ideas.asked)
			return;
		gather(course);
		best = choose(course);
		if (best)
			course->known.items[course->known.count++] = best->idea.patch;
		else
			failed++;
	}
}

/* What is right goes on being right when the others are known. Returns whether all was. */
static bool check(struct course *course)
{
	struct flow_patches *known = &course->known;
	unsigned count = known->count;

	for (unsigned i = 0; i < count; i++) {
		struct flow_patch patch = known->items[0];
		struct trail_verdict verdict;
		struct candidate *candidate = find_candidate(course, &patch);

		known->count--;
		memmove(known->items, known->items + 1, known->count * sizeof(*known->items));
		run_without(course, false);
		verdict = try_patch(course, &patch);
		if (!is_good(&verdict, &candidate->idea, AGAINST_AT_LAST)) {
			candidate->is_hopeless = true;
			continue;
		}
		patch.since = verdict.since;
		patch.until = verdict.until;
		known->items[known->count++] = patch;
	}
	return known->count == count;
}

static void take_course(struct patch_lessons *lessons)
{
	struct course *course = calloc(1, sizeof(*course));

	if (!course)
		return;
	course->lessons = lessons;
	course->insns = INSNS_MAX;
	code_init(&course->code, lessons->machines);
	for (unsigned i = 0; i < LEARNED_MAX; i++) {
		learn(course);
		if (check(course))
			break;
	}
	memcpy(lessons->patches.items, course->known.items, sizeof(course->known.items));
	lessons->patches.count = course->known.count;
	patch_trail_free(&course->without);
	patch_trail_free(&course->with);
	patch_trail_free(&course->unclear);
	code_free(&course->code);
	free(course);
}

const struct flow_patches *patch_lessons_get(struct patch_lessons *lessons)
{
	(void)pthread_mutex_lock(&lessons->lock);
	if (!lessons->is_done)
		take_course(lessons);
	lessons->is_done = true;
	(void)pthread_mutex_unlock(&lessons->lock);
	return &lessons->patches;
}

bool patch_lessons_apply(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	const struct flow_patches *patches;

	if (!flow->where.lessons || flow->is_taught)
		return false;
	flow->is_taught = true;
	patches = patch_lessons_get(flow->where.lessons);
	if (!patches->count)
		return false;
	flow->disagrees = false;
	flow_mark_return(run, mark, patches);
	return true;
}
