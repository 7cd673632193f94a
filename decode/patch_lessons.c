#include "decode/patch_lessons.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/patch_search.h"

enum {
	SAMPLE_BYTES = 2 << 20,   /* of trace, shared by the queues */
	LEAST_BYTES = 64 << 10,   /* of each */
	SEGMENT_BYTES = 64 << 10, /* of trace, at least */
	INSNS_MAX = 1 << 30,      /* followed in all, about */
	CANDIDATES = 64,
	TRIED = 20,              /* of them at a time */
	FAILED_MAX = 6,          /* times that nothing is learned */
	LEAST_GAIN = 5,          /* disagreements that a patch explains: more than chance does */
	BAD_VISITS = 8,          /* of so many visits to a label one may end in a gap, */
	BAD_VISITS_AT_LAST = 32, /* or of so many, when the others are known */
	CLEARLY_BAD = 32,        /* with so many more the rest need not be looked at */
};

struct candidate {
	struct patch_idea idea;
	unsigned times;   /* that it explained something, this time */
	uint64_t gaps;    /* of the sample with it; UINT64_MAX: it will not do */
	bool is_hopeless; /* another explains as much */
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
	uint64_t visits, bad_visits;
	uint64_t insns; /* that may still be followed */
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

/* Returns the gaps in it. With more than `most`, it need not come to the end. */
static uint64_t run_segment(struct course *course, const struct lesson_source *source,
			    const struct pt_segment *segment, bool is_asking, uint64_t most)
{
	struct flow_code where = source->where;
	struct pt_flow *flow = &course->flow;
	int r = 0;

	where.code = &course->code;
	where.lessons = NULL;
	where.ideas = is_asking ? &course->ideas : NULL;
	pt_flow_init(flow, segment, course->lessons->config, &where, true);
	if (!is_asking)
		flow->patches.work = 0;
	memcpy(flow->patches.items, course->known.items, sizeof(flow->patches.items));
	flow->patches.count = course->known.count;
	flow->patch_watched = course->known.count ? course->known.count - 1 : 0;
	course->batch.room = FLOW_BATCH;
	while (!r && flow->gaps <= most) {
		r = pt_flow_run(flow, &course->batch);
		if (!code_is_full(&course->code))
			continue;
		flow->block = NULL;
		code_trim(&course->code);
	}
	course->insns -= flow->insns < course->insns ? flow->insns : course->insns;
	course->visits += flow->patch_visits;
	course->bad_visits += flow->patch_gaps;
	return flow->gaps;
}

/* Whether packets and code disagree soon after the last of the patches, more often than others that
 * are not known yet explain. */
static bool is_often_bad(const struct course *course, unsigned one_in, uint64_t allowed)
{
	return course->bad_visits > allowed + course->visits / one_in;
}

/* One queue's part of the sample. */
static uint64_t run_source(struct course *course, const struct lesson_source *source,
			   uint64_t bytes, bool is_asking, uint64_t most)
{
	struct patch_lessons *lessons = course->lessons;
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t gaps = 0;

	pt_walk_init(&walk, source->queue, lessons->config, &lessons->offsets, SEGMENT_BYTES);
	while (bytes && gaps <= most && !is_often_bad(course, BAD_VISITS, CLEARLY_BAD) &&
	       !pt_walk_next(&walk, &segment)) {
		uint64_t size = segment.to - segment.from;

		gaps += run_segment(course, source, &segment, is_asking, most - gaps);
		bytes = bytes > size ? bytes - size : 0;
	}
	return gaps;
}

/* Returns the gaps in the sample, or some number above `most`. */
static uint64_t run_sample(struct course *course, bool is_asking, uint64_t most)
{
	struct patch_lessons *lessons = course->lessons;
	size_t count = lessons->sources.count;
	uint64_t bytes = SAMPLE_BYTES / (count ? count : 1), gaps = 0;

	if (bytes < LEAST_BYTES)
		bytes = LEAST_BYTES;
	course->visits = course->bad_visits = 0;
	for (size_t i = 0; i < count && gaps <= most; i++)
		gaps += run_source(course, &lessons->sources.items[i], bytes, is_asking,
				   most - gaps);
	return gaps;
}

static struct candidate *find_candidate(struct course *course, const struct flow_patch *patch)
{
	for (unsigned i = 0; i < course->count; i++) {
		const struct flow_patch *own = &course->items[i].idea.patch;

		if (own->site == patch->site && own->to == patch->to &&
		    own->machine == patch->machine)
			return &course->items[i];
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->times != right->times)
		return left->times > right->times ? -1 : 1;
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

/* How many gaps the sample has with one more patch; UINT64_MAX: more than `most`, or the packets
 * speak against it. */
static uint64_t try_candidate(struct course *course, const struct candidate *candidate,
			      uint64_t most)
{
	struct flow_patches *known = &course->known;
	uint64_t gaps;

	known->items[known->count++] = candidate->idea.patch;
	gaps = run_sample(course, false, most);
	known->count--;
	return gaps > most || is_often_bad(course, BAD_VISITS, 0) ? UINT64_MAX : gaps;
}

/* The candidate with which the sample has the fewest gaps, and clearly fewer than now; NULL when
 * there is none. Those that do as well as each other are hopeless. */
static const struct candidate *choose(struct course *course, uint64_t now)
{
	struct candidate *best = NULL;
	unsigned tried = 0;
	bool is_tied = false;

	for (unsigned i = 0; i < course->count && tried < TRIED && course->insns; i++) {
		struct candidate *candidate = &course->items[i];

		candidate->gaps = UINT64_MAX;
		if (candidate->is_hopeless || !candidate->times || now < LEAST_GAIN)
			continue;
		tried++;
		candidate->gaps =
			try_candidate(course, candidate, best ? best->gaps : now - LEAST_GAIN);
		if (candidate->gaps == UINT64_MAX)
			continue;
		is_tied = best && candidate->gaps == best->gaps;
		best = candidate;
	}
	for (unsigned i = 0; is_tied && i < course->count; i++)
		course->items[i].is_hopeless |= course->items[i].gaps == best->gaps;
	return is_tied ? NULL : best;
}

static void learn(struct course *course)
{
	unsigned failed = 0;

	while (failed < FAILED_MAX && course->insns && course->known.count < FLOW_PATCHES - 1) {
		const struct candidate *best;
		uint64_t gaps;

		course->ideas.count = course->ideas.asked = 0;
		gaps = run_sample(course, true, UINT64_MAX);
		if (!course->ideas.asked)
			return;
		gather(course);
		best = choose(course, gaps);
		if (best)
			course->known.items[course->known.count++] = best->idea.patch;
		else
			failed++;
	}
}

/* What is right goes on being right when the others are known. */
static void check(struct course *course)
{
	struct flow_patches *known = &course->known;
	unsigned count = known->count;

	for (unsigned i = 0; i < count; i++) {
		struct flow_patch patch = known->items[0];

		memmove(known->items, known->items + 1, (known->count - 1) * sizeof(*known->items));
		known->items[known->count - 1] = patch;
		(void)run_sample(course, false, UINT64_MAX);
		known->count -= is_often_bad(course, BAD_VISITS_AT_LAST, 0);
	}
}

static void take_course(struct patch_lessons *lessons)
{
	struct course *course = calloc(1, sizeof(*course));

	if (!course)
		return;
	course->lessons = lessons;
	course->insns = INSNS_MAX;
	code_init(&course->code, lessons->machines);
	learn(course);
	check(course);
	memcpy(lessons->patches.items, course->known.items, sizeof(course->known.items));
	lessons->patches.count = course->known.count;
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
