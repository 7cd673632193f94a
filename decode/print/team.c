#include "decode/print/team.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/error.h"
#include "decode/base/monotonic.h"
#include "decode/perf/sample_queues.h"
#include "decode/perf/trace_index.h"
#include "decode/pt/aux_pages.h"
#include "decode/pt/pt_offset_learn.h"

enum {
	/* Trace bytes that a segment has at least: text is some hundred times as much. */
	TEXT_SEGMENT_BYTES = 8 << 10,
	GAPS_SEGMENT_BYTES = 256 << 10,
	LAST_SEGMENT_BYTES = 32 << 10, /* of gaps, near the end of a lane */
	JOBS_PER_THREAD = 2,           /* in each lane, beside the one whose lines are next */
	JOBS_MAX = 1024,               /* in all lanes, if they are not more */
	/* Memory of all lanes: a segment's text may be so much, and each thread runs ahead by one.
	 */
	THREAD_TEXT_BYTES = 12 << 20,
	TEXT_BYTES = 32 << 20,
	CHUNK_BYTES = 256 << 10, /* stays in the cache of the thread that makes it and writes it */
	CHUNK_LEAST = 2 << 10,   /* also if that takes more memory */
	CODE_BYTES =
		96 << 20, /* of up to 8 threads, two generations of what they share included, */
	POOL_BYTES = 32 << 20,    /* of which each has so much */
	OWN_CODE_BYTES = 4 << 20, /* a thread has at least, also where they are many */
	TEXT_ITEMS = 256,         /* of a batch, where each may be many lines; */
	FEW_ITEMS = 8,            /* with more queues than so many */
	MANY_QUEUES = 512,
	/* Trace that a lane, and all of them, is done with before its pages are given back: that
	 * interrupts each CPU with a thread. */
	LANE_TRACE_BYTES = 4 << 20,
	TRACE_BYTES = 16 << 20,
};

/* Lines that depend on others before them cannot be made out of order. */
static bool needs_order(const struct print_config *print)
{
	const struct itrace *itrace = &print->itrace;
	bool samples = itrace->instructions &&
		       (itrace->period_unit == PERIOD_INSNS ? itrace->period > 1 : itrace->period);

	return samples || itrace->skip || print->fields & FIELD_IPC || follows_branches(print);
}

static bool is_about_gaps(const struct itrace *itrace)
{
	return !itrace->instructions && !itrace->branches && !itrace->calls && !itrace->returns &&
	       !itrace->transactions && !itrace->ptwrites && !itrace->power &&
	       !itrace->interrupts && !itrace->samples.calls && !itrace->samples.branches;
}

static void add_up(struct team *team, struct outcome *outcome)
{
	for (int kind = 0; kind < GAP_KINDS; kind++)
		team->gaps[kind] += outcome->gaps[kind];
	team->left_out |= outcome->left_out;
	team->insns += outcome->insns;
	team->events += outcome->events;
	team->addresses += outcome->addresses;
	team->psbs += outcome->psbs;
	team->translated += outcome->translated;
	team->corrections += outcome->corrections;
	team->patches.is_cut |= outcome->is_full;
	patch_list_add(&team->patches, outcome->patches, outcome->patch_count);
	free(outcome);
}

/* An empty chunk; NULL when memory is out. */
static struct chunk *take_chunk(struct team *team)
{
	struct chunk *chunk = chunk_list_pop(&team->chunks);

	if (!chunk)
		chunk = chunk_new(team->chunk_bytes);
	if (chunk)
		team->text_bytes += chunk->text.room;
	else
		team->out_of_memory = team->stop = true;
	return chunk;
}

/* The last one is taken first again: it is still in the cache. One that had to grow is not kept. */
static void give_back(struct team *team, struct chunk *chunk)
{
	struct outcome *outcome;

	team->text_bytes -= chunk->text.room;
	while ((outcome = chunk->outcomes)) {
		chunk->outcomes = outcome->next;
		add_up(team, outcome);
	}
	if (chunk->text.room > 2 * chunk_room(team->chunk_bytes)) {
		chunk_free(chunk);
		return;
	}
	chunk->text.size = 0;
	chunk->runs.count = 0;
	chunk->next = team->chunks.first;
	team->chunks.first = chunk;
}

/* What came of a segment whose lines are handed over counts when they are written. */
static void settle(struct team *team, struct chunk *last, struct outcome *outcome)
{
	if (!last) {
		add_up(team, outcome);
		return;
	}
	outcome_list_add(&last->outcomes, outcome);
}

static bool can_walk(const struct team *team, const struct lane *lane)
{
	return !lane->walking && !lane->walked && lane->jobs < team->lane_jobs;
}

/* Rank a lane by the time of its next job, or of the segment that it can cut. */
static void rank(struct team *team, struct lane *lane)
{
	uint64_t time = RANK_LAST;

	if (lane->waiting)
		time = job_time(lane->waiting);
	else if (can_walk(team, lane))
		time = lane->walk.walk.segment.clock.now;
	rank_heap_move(&team->ranks, &lane->ranked, time);
}

/* There are news of a lane. */
static void note_change(struct team *team, struct lane *lane)
{
	rank(team, lane);
	if (lane->is_changed)
		return;
	lane->is_changed = true;
	lane->next_changed = team->changed;
	team->changed = lane;
}

/* Give the chunks of a lane that are done to the timeline, and drop the jobs that have ended. */
static void hand_over(struct team *team, struct lane *lane)
{
	struct timeline_lane *to = &team->timeline.lanes[lane - team->lanes];

	while (lane->first) {
		struct job *job = lane->first;

		to->from_ns = job->from_ns;
		chunk_list_join(&to->chunks, &job->chunks);
		if (!job->outcome)
			break;
		settle(team, to->chunks.first ? to->chunks.last : NULL, take_ptr(job->outcome));
		lane_drop_first(lane);
	}
	to->ended = lane->walked && !lane->first;
	team->lanes_left -= to->ended;
	rank(team, lane);
}

static bool can_write(struct team *team)
{
	struct lane *lane;

	if (team->stop)
		return false;
	while ((lane = team->changed)) {
		team->changed = lane->next_changed;
		lane->is_changed = false;
		hand_over(team, lane);
	}
	return timeline_is_ready(&team->timeline);
}

/* Whether a lane has fewer jobs waiting than there are threads, and can make more. A thread that
 * finds no job sleeps. When it is woken it shares the CPU of the thread that wakes it for some
 * milliseconds. To avoid that, the next job is made before the last one is taken. */
static bool is_short_of_jobs(const struct team *team, const struct lane *lane)
{
	return lane->waiting_jobs < team->threads && can_walk(team, lane);
}

/* The lane without whose lines nothing can be written, if a thread can do something about it. */
static struct lane *pick_missed(struct team *team, bool *runs)
{
	struct timeline_lane *missed = team->writing ? NULL : timeline_missed(&team->timeline);
	struct lane *lane = missed ? &team->lanes[missed - team->timeline.lanes] : NULL;

	if (!lane)
		return NULL;
	*runs = lane->first;
	if (*runs ? lane->first == lane->waiting : can_walk(team, lane))
		return lane;
	return NULL;
}

/* The lane to work for, and whether to run its next job, or else to cut its next segment. First
 * comes what is missed for writing, and then, as long as there is memory, what is earliest in time.
 * NULL when there is nothing to do. */
static struct lane *pick(struct team *team, bool *runs)
{
	struct lane *lane = pick_missed(team, runs);
	struct ranked *first;

	if (lane || team->text_bytes >= team->text_most)
		return lane;
	first = rank_heap_first(&team->ranks);
	if (!first)
		return NULL;
	lane = (struct lane *)((char *)first - offsetof(struct lane, ranked));
	*runs = lane->waiting && !is_short_of_jobs(team, lane);
	return lane;
}

/* A thread that waits for work. */
struct sleeper {
	struct sleeper *next;
	pthread_cond_t wake;
	bool is_asleep;
};

static void sleep_on(struct team *team, struct sleeper *self)
{
	self->is_asleep = true;
	self->next = team->sleepers;
	team->sleepers = self;
	while (self->is_asleep)
		pthread_cond_wait(&self->wake, &team->lock);
	team->is_waking = false;
}

static void wake_first(struct team *team)
{
	struct sleeper *first = team->sleepers;

	team->sleepers = first->next;
	first->is_asleep = false;
	pthread_cond_signal(&first->wake);
}

/* If there is work for one more thread, wake the one that had some last: its code is the most
 * likely to be in a cache. It will do the same for the next one. So no more threads are awake than
 * have something to do. */
static void wake_one(struct team *team)
{
	bool runs;

	if (!team->sleepers || team->is_waking || !pick(team, &runs))
		return;
	team->is_waking = true;
	wake_first(team);
}

/* Write what comes next. If another thread is doing so, it will write this, too. */
static void write_lines(struct team *team)
{
	struct timeline *timeline = &team->timeline;
	struct chunk *chunk;

	if (team->writing)
		return;
	team->writing = true;
	while (can_write(team)) {
		wake_one(team); /* writing may take long */
		trace_progress_clear(&team->progress);
		pthread_mutex_unlock(&team->lock);
		team->written = timeline_write(timeline, team->error);
		pthread_mutex_lock(&team->lock);
		while ((chunk = chunk_list_pop(&timeline->done)))
			give_back(team, chunk);
		if (team->written || timeline->full)
			team->stop = true;
	}
	team->writing = false;
}

/* Bytes that the next segment of a lane should have. Towards the end they become fewer, so that no
 * thread waits long for the last one of another. */
static uint64_t segment_bytes(const struct team *team, const struct lane *lane)
{
	const struct pt_segment *open = &lane->walk.walk.segment;
	uint64_t share = (open->queue->size - open->from) / (2 * team->threads);

	if (team->print->segment_bytes)
		return team->print->segment_bytes;
	if (!team->gaps_only)
		return TEXT_SEGMENT_BYTES;
	if (share > GAPS_SEGMENT_BYTES || team->threads == 1)
		return GAPS_SEGMENT_BYTES;
	return share > LAST_SEGMENT_BYTES ? share : LAST_SEGMENT_BYTES;
}

/* The next segment of a lane becomes a job. */
static void walk_on(struct team *team, struct lane *lane)
{
	struct job *job = malloc(sizeof(*job)); /* its parts are set before they are used */
	int r;

	if (!job) {
		team->out_of_memory = team->stop = true;
		return;
	}
	lane->walking = true;
	lane->walk.walk.min_size = segment_bytes(team, lane);
	rank(team, lane);
	wake_one(team);
	pthread_mutex_unlock(&team->lock);
	r = timed_walk_next(&lane->walk, &job->segment);
	pthread_mutex_lock(&team->lock);
	lane->walking = false;
	lane->walked = r;
	if (r) {
		free(job);
	} else {
		job_init(job, team->print, team->in_order ? &lane->printer : NULL, lane->from_ns);
		lane->from_ns = job->from_ns;
		lane_add(lane, job);
	}
	note_change(team, lane);
}

/* Give pages of trace back that all jobs of the lane are done with, if they are many, and now and
 * then those of the tables that grow with the trace. The lock is given up and taken again. */
static void release_trace(struct team *team, struct lane *lane)
{
	const struct aux_queue *queue = lane->first->segment.queue;
	uint64_t from = lane->held, to = lane->first->segment.from;
	bool rests;

	if (to - from < team->trace_bytes)
		return;
	lane->held = to;
	team->released += to - from;
	if (trace_progress_add(&team->progress, to - from, monotonic_ms()) && !team->writing &&
	    !team->timeline.written)
		trace_progress_show(&team->progress);
	rests = team->released >= TRACE_BYTES;
	if (rests)
		team->released = 0;
	pthread_mutex_unlock(&team->lock);
	aux_pages_release_trace(&team->print->mapping, queue, from, to);
	if (rests && team->print->data)
		perf_data_rest(team->print->data);
	if (rests && team->print->sideband)
		sideband_rest(team->print->sideband);
	if (rests && team->print->samples)
		sample_queues_rest(team->print->samples);
	pthread_mutex_lock(&team->lock);
}

static void run_on(struct team *team, struct lane *lane, struct worker *worker)
{
	struct chunk *chunk = take_chunk(team);
	struct outcome *outcome;
	struct job *job;
	size_t room;
	int r;

	if (!chunk)
		return;
	room = chunk->text.room;
	job = lane_take(lane);
	rank(team, lane);
	wake_one(team);
	release_trace(team, lane);
	pthread_mutex_unlock(&team->lock);
	r = job_run(job, worker, &lane->where, chunk);
	outcome = r == -PTVM_END ? job_outcome(job) : NULL;
	pthread_mutex_lock(&team->lock);
	job->outcome = outcome;
	team->text_bytes += chunk->text.room - room;
	if (chunk->text.failed)
		team->out_of_memory = team->stop = true;
	if (chunk->runs.count)
		chunk_list_push(&job->chunks, chunk);
	else
		give_back(team, chunk);
	if (!r)
		lane_wait(lane, job);
	else if (!outcome)
		team->out_of_memory = team->stop = true;
	note_change(team, lane);
}

/* Memory for what a thread keeps of code; beside others it is less, since the pool has the most. */
static size_t code_share(const struct team *team)
{
	size_t share = (CODE_BYTES - 2 * POOL_BYTES) / team->threads;

	if (team->threads == 1)
		return CODE_BYTES;
	return share > OWN_CODE_BYTES ? share : OWN_CODE_BYTES;
}

static void worker_init(struct worker *worker, struct team *team)
{
	worker->print = team->print;
	worker->gaps_only = team->gaps_only;
	worker->chunk_bytes = team->chunk_bytes;
	worker->batch.room = team->batch_room;
	code_init(&worker->code, team->print->machines);
	worker->code.most_bytes = code_share(team);
	if (team->threads > 1)
		worker->code.pool = &team->pool;
}

/* A thread that sleeps does not keep a generation that others have left. Returns whether it did. */
static bool leave_full_code(struct team *team, struct worker *worker)
{
	if (!code_is_full(&worker->code))
		return false;
	pthread_mutex_unlock(&team->lock);
	code_trim(&worker->code);
	pthread_mutex_lock(&team->lock);
	return true;
}

/* Where a generation has begun, those who sleep shall leave the one before. */
static void note_pool(struct team *team)
{
	unsigned begun = code_pool_begun(&team->pool);

	if (team->pool_begun == begun)
		return;
	team->pool_begun = begun;
	while (team->sleepers)
		wake_first(team);
}

static bool is_over(const struct team *team)
{
	return team->stop || !team->lanes_left;
}

static void *work(void *context)
{
	struct sleeper self = { .wake = PTHREAD_COND_INITIALIZER };
	struct team *team = context;
	struct worker worker;
	struct lane *lane;
	bool runs;

	worker_init(&worker, team);
	pthread_mutex_lock(&team->lock);
	while (!is_over(team)) {
		lane = pick(team, &runs);
		if (!lane) {
			if (!leave_full_code(team, &worker))
				sleep_on(team, &self);
			continue;
		}
		if (runs)
			run_on(team, lane, &worker);
		else
			walk_on(team, lane);
		write_lines(team);
		note_pool(team);
	}
	while (team->sleepers)
		wake_first(team);
	pthread_mutex_unlock(&team->lock);
	pthread_cond_destroy(&self.wake);
	code_free(&worker.code);
	return NULL;
}

/* Let a new thread begin on another CPU than this one. Otherwise it may begin here and wait for
 * milliseconds, even if all that other CPUs run is SCHED_IDLE. */
static void begin_elsewhere(pthread_attr_t *attr, const cpu_set_t *all)
{
	cpu_set_t others = *all;
	int cpu = sched_getcpu();

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(cpu, &others);
	if (CPU_COUNT(&others))
		(void)pthread_attr_setaffinity_np(attr, sizeof(others), &others);
}

/* From now on the kernel is free to put the thread anywhere. */
static void *join_in(void *context)
{
	const struct team *team = context;

	(void)sched_setaffinity(0, sizeof(team->cpus), &team->cpus);
	return work(context);
}

/* Fewer threads than are wanted are slower, that is all. */
static unsigned start_threads(struct team *team, pthread_t *threads)
{
	pthread_attr_t attr;
	unsigned count = 0;

	if (team->threads == 1 || pthread_attr_init(&attr))
		return 0;
	if (!sched_getaffinity(0, sizeof(team->cpus), &team->cpus))
		begin_elsewhere(&attr, &team->cpus);
	while (count + 1 < team->threads && !pthread_create(&threads[count], &attr, join_in, team))
		count++;
	pthread_attr_destroy(&attr);
	return count;
}

int team_run(struct team *team, struct ptvm_error *error)
{
	pthread_t threads[TEAM_THREADS_MAX];
	unsigned count;

	team->error = error;
	count = start_threads(team, threads);
	work(team);
	while (count)
		pthread_join(threads[--count], NULL);
	pthread_mutex_lock(&team->lock);
	trace_progress_clear(&team->progress);
	write_lines(team); /* without lanes there may be records */
	pthread_mutex_unlock(&team->lock);
	if (team->out_of_memory)
		return -PTVM_NO_MEMORY;
	return team->written;
}

static void init_walk(struct team *team, struct timed_walk *walk, const struct aux_queue *queues,
		      size_t number, const struct pt_offsets *offsets)
{
	const struct print_config *print = team->print;

	timed_walk_init(walk, &queues[number], print->pt, offsets, 0);
	walk->walk.leaps = team->gaps_only;
	walk->mapping = print->mapping;
	if (print->times.count && print->pt->conv.valid)
		walk->times = &print->times;
	if (print->index)
		walk->points = &print->index->queues[number];
}

static struct flow_code code_of(struct team *team, const struct aux_queue *queue)
{
	const struct sideband *sideband = team->print->sideband;
	struct flow_code where = { .pid = queue->tid >= 0 ? queue->pid : -1,
				   .inference = &team->inference,
				   .doubts = &team->doubts };

	if (sideband && queue->cpu >= 0)
		where.switches = sideband_switches(sideband, queue->cpu, &where.switch_count);
	return where;
}

/* What code there was is a matter of all queues, also of those that nobody wants to see. */
static int init_lanes(struct team *team, const struct aux_queue *queues, size_t count,
		      const struct pt_offsets *offsets)
{
	const struct print_config *print = team->print;

	for (size_t i = 0; i < count; i++) {
		struct lane *lane = &team->lanes[team->lane_count];

		lane->where = code_of(team, &queues[i]);
		if (trace_sources_add(&team->inference.sources, &queues[i], &lane->where))
			return -PTVM_NO_MEMORY;
		if (queues[i].cpu >= 0 && !number_ranges_has(&print->cpus, queues[i].cpu))
			continue;
		init_walk(team, &lane->walk, queues, i, offsets);
		printer_init(&lane->printer, print, &queues[i], &lane->where);
		rank_heap_add(&team->ranks, &lane->ranked);
		team->progress.total += queues[i].size;
		team->timeline.lane_count = ++team->lane_count;
	}
	return 0;
}

/* It may depend neither on threads nor on what is selected, since what is found patched may depend
 * on it. */
static uint32_t batch_room(const struct team *team)
{
	uint32_t items = team->inference.sources.count > MANY_QUEUES ? FEW_ITEMS : TEXT_ITEMS;

	return team->gaps_only ? FLOW_BATCH : FLOW_MARGIN + items;
}

/* With many lanes each has fewer jobs, and at last shorter text. */
static void share_memory(struct team *team)
{
	size_t lanes = team->lane_count ? team->lane_count : 1;
	size_t text = (size_t)THREAD_TEXT_BYTES * team->threads;

	if (text > TEXT_BYTES)
		text = TEXT_BYTES;
	team->lane_jobs = 1 + JOBS_PER_THREAD * team->threads;
	if (team->lane_jobs > JOBS_MAX / lanes)
		team->lane_jobs = lanes < JOBS_MAX ? (unsigned)(JOBS_MAX / lanes) : 1;
	team->chunk_bytes = text / 2 / lanes;
	if (team->chunk_bytes > CHUNK_BYTES)
		team->chunk_bytes = CHUNK_BYTES;
	if (team->chunk_bytes < CHUNK_LEAST)
		team->chunk_bytes = CHUNK_LEAST;
	team->text_most = text;
	team->batch_room = batch_room(team);
	team->trace_bytes =
		TRACE_BYTES / lanes < LANE_TRACE_BYTES ? TRACE_BYTES / lanes : LANE_TRACE_BYTES;
}

static unsigned thread_count(const struct team *team, unsigned wanted)
{
	if (team->in_order || !wanted)
		return 1;
	return wanted < TEAM_THREADS_MAX ? wanted : TEAM_THREADS_MAX;
}

int team_init(struct team *team, const struct aux_queue *queues, size_t count,
	      const struct print_config *print, const struct timeline_output *output)
{
	struct pt_offsets offsets;
	size_t room = count ? count : 1;

	*team = (struct team){ .print = print };
	team->gaps_only = is_about_gaps(&print->itrace);
	team->in_order = needs_order(print);
	team->threads = thread_count(team, output->threads);
	trace_progress_init(&team->progress, monotonic_ms());
	pthread_mutex_init(&team->lock, NULL);
	code_pool_init(&team->pool, POOL_BYTES);
	team->lanes = calloc(room, sizeof(*team->lanes));
	if (!team->lanes || rank_heap_init(&team->ranks, room) ||
	    timeline_init(&team->timeline, room, print, output) ||
	    pt_offsets_learn(queues, count, print->pt, &print->mapping, &offsets))
		return -PTVM_NO_MEMORY;
	patch_inference_init(&team->inference, print->pt, print->machines, &offsets);
	team->inference.sources.mapping = print->mapping;
	module_doubts_init(&team->doubts, &team->inference.sources);
	code_visits_init(&team->visits, &team->inference.sources);
	if (init_lanes(team, queues, count, &offsets))
		return -PTVM_NO_MEMORY;
	team->lanes_left = team->lane_count;
	share_memory(team);
	return 0;
}

void team_free(struct team *team)
{
	if (!team->print)
		return;
	for (size_t i = 0; i < team->lane_count; i++) {
		while (team->lanes[i].first)
			lane_drop_first(&team->lanes[i]);
		printer_free(&team->lanes[i].printer);
	}
	free(team->lanes);
	rank_heap_free(&team->ranks);
	chunk_list_free(&team->chunks);
	timeline_free(&team->timeline);
	patch_list_free(&team->patches);
	code_visits_free(&team->visits);
	module_doubts_free(&team->doubts);
	patch_inference_free(&team->inference);
	code_pool_free(&team->pool);
	pthread_mutex_destroy(&team->lock);
}

static void get_result(const struct team *team, struct team_result *ret)
{
	memcpy(ret->gaps, team->gaps, sizeof(ret->gaps));
	ret->insns = team->insns;
	ret->events = team->events;
	ret->addresses = team->addresses;
	ret->psbs = team->psbs;
	ret->full = team->timeline.full;
	ret->written = team->timeline.written;
	ret->left_out = team->left_out || team->timeline.records.left_out;
	ret->corrections = team->corrections;
	ret->note = team->timeline.records.points.note;
	ret->translated = team->translated;
	ret->patched = patch_list_sites(&team->patches);
}

int team_print(const struct aux_queue *queues, size_t count, const struct print_config *print,
	       const struct timeline_output *output, struct team_result *ret,
	       struct ptvm_error *error)
{
	struct team team;
	int r;

	*ret = (struct team_result){ 0 };
	for (size_t i = 0; i < count; i++)
		ret->bytes += queues[i].size;
	r = team_init(&team, queues, count, print, output);
	r = r ? -PTVM_NO_MEMORY : team_run(&team, error);
	get_result(&team, ret);
	team_free(&team);
	return r;
}
