#include "decode/team.h"

#include <stdlib.h>

#include "decode/aux_pages.h"
#include "decode/base/error.h"
#include "decode/pt_offset_learn.h"
#include "decode/trace_index.h"

enum {
	/* Trace bytes that a segment has at least: text is some hundred times as much. */
	TEXT_SEGMENT_BYTES = 32 << 10,
	GAPS_SEGMENT_BYTES = 256 << 10,
	JOBS_PER_THREAD = 2, /* in each lane, beside the one that is merged */
	/* Memory of all lanes and threads together. */
	TEXT_BYTES = 32 << 20,
	CHUNK_BYTES = 1 << 20,
	CODE_BYTES = 128 << 20,
};

/* Lines that depend on others before them cannot be made out of order. */
static bool needs_order(const struct print_config *print)
{
	const struct itrace *itrace = &print->itrace;
	bool samples = itrace->instructions &&
		       (itrace->period_unit == PERIOD_INSNS ? itrace->period > 1 : itrace->period);

	return samples || itrace->skip || print->fields & (FIELD_IPC | FIELD_CALLINDENT);
}

static bool is_about_gaps(const struct itrace *itrace)
{
	return !itrace->instructions && !itrace->branches && !itrace->calls && !itrace->returns &&
	       !itrace->transactions && !itrace->ptwrites && !itrace->power && !itrace->interrupts;
}

/* The next segment of a lane as a job, NULL at its end. Without the lock: `walking` is set. */
static struct job *cut(struct team *team, struct lane *lane)
{
	struct job *job = malloc(sizeof(*job)); /* its large parts are set before they are used */

	if (!job) {
		team->out_of_memory = true;
		return NULL;
	}
	if (timed_walk_next(&lane->walk, &job->segment)) {
		free(job);
		return NULL;
	}
	job->next = NULL;
	job->begun = job->full = false;
	job->chunk_bytes = team->chunk_bytes;
	job->state = JOB_WAITING;
	job->printer = team->in_order ? &lane->printer : NULL;
	job->chunk = (struct chunk){ .runs = { 0 } };
	return job;
}

static void append(struct lane *lane, struct job *job)
{
	if (!job) {
		lane->walked = true;
		return;
	}
	if (lane->last)
		lane->last->next = job;
	else
		lane->first = job;
	lane->last = job;
	lane->jobs++;
}

static void add_up(struct team *team, struct job *job)
{
	for (int kind = 0; kind < GAP_KINDS; kind++) {
		team->gaps[kind] += job->printer->gaps[kind];
		job->printer->gaps[kind] = 0;
	}
	team->insns += job->flow.insns;
	team->translated += job->flow.clock.translated - job->segment.clock.translated;
	team->corrections += job->flow.clock.corrections - job->segment.clock.corrections;
	label_list_add(&team->labels, &job->flow.patches);
}

/* Run a job, without the lock, as far as there is room for its lines. */
static int run(struct team *team, struct lane *lane, struct job *job, struct code *code)
{
	struct flow_code where = lane->where;
	int r;

	where.code = code;
	r = job_run(job, team->print, &where, team->gaps_only);
	if (r)
		aux_pages_release_trace(&team->print->mapping, job->segment.queue,
					job->segment.from, job->segment.to);
	return r;
}

/* With the lock: what has come of a run. */
static void put_back(struct team *team, struct job *job, int r)
{
	job_publish(job);
	job->state = r ? JOB_ENDED : JOB_WAITING;
	if (r)
		add_up(team, job);
}

static bool can_run(const struct job *job)
{
	return job->state == JOB_WAITING && !job->full;
}

static bool can_walk(const struct team *team, const struct lane *lane)
{
	return !lane->walking && !lane->walked && lane->jobs < team->lane_jobs;
}

/* What is most urgent, with the lock: lines that the merger waits for, then a lane without jobs,
 * then what comes next in any lane. A lane without a job is one to walk. */
static struct lane *pick(struct team *team, struct job **ret)
{
	struct lane *walk = NULL, *next = NULL;
	struct job *next_job = NULL;

	for (size_t i = 0; i < team->lane_count; i++) {
		struct lane *lane = &team->lanes[i];
		struct job *job = lane->first;

		*ret = job;
		if (job ? can_run(job) : can_walk(team, lane))
			return lane;
		while (job && !can_run(job))
			job = job->next;
		if (job && !next) {
			next = lane;
			next_job = job;
		}
		if (can_walk(team, lane) && (!walk || lane->jobs < walk->jobs))
			walk = lane;
	}
	*ret = next_job;
	return next ? next : walk;
}

static void walk_on(struct team *team, struct lane *lane)
{
	struct job *job;

	lane->walking = true;
	pthread_mutex_unlock(&team->lock);
	job = cut(team, lane);
	pthread_mutex_lock(&team->lock);
	lane->walking = false;
	append(lane, job);
}

static void run_on(struct team *team, struct lane *lane, struct job *job, struct code *code)
{
	int r;

	job->state = JOB_RUNNING;
	pthread_mutex_unlock(&team->lock);
	r = run(team, lane, job, code);
	pthread_mutex_lock(&team->lock);
	put_back(team, job, r);
}

/* A thread's code, of which all together must fit in memory. */
static void init_code(const struct team *team, struct code *code)
{
	code_init(code, team->print->machines);
	if (team->thread_count && code->most_bytes > CODE_BYTES / team->thread_count)
		code->most_bytes = CODE_BYTES / team->thread_count;
}

static void *work(void *context)
{
	struct team *team = context;
	struct code code;

	pthread_mutex_lock(&team->lock);
	init_code(team, &code);
	while (!team->stop) {
		struct job *job;
		struct lane *lane = pick(team, &job);

		if (!lane) {
			pthread_cond_wait(&team->work, &team->lock);
			continue;
		}
		if (job)
			run_on(team, lane, job, &code);
		else
			walk_on(team, lane);
		pthread_cond_broadcast(&team->work);
		pthread_cond_signal(&team->lines);
	}
	pthread_mutex_unlock(&team->lock);
	code_free(&code);
	return NULL;
}

/* The merger's own thread does what it needs. */
static void work_for(struct team *team, struct lane *lane)
{
	struct job *job = lane->first;

	if (!job)
		append(lane, cut(team, lane));
	else
		put_back(team, job, run(team, lane, job, &team->code));
}

static void drop_first(struct lane *lane)
{
	struct job *job = lane->first;

	lane->first = job->next;
	if (!lane->first)
		lane->last = NULL;
	lane->jobs--;
	job_free(job);
}

const struct chunk *team_lines(struct team *team, struct lane *lane)
{
	const struct chunk *chunk = NULL;

	pthread_mutex_lock(&team->lock);
	while (!chunk && !team->out_of_memory && (lane->first || !lane->walked)) {
		struct job *job = lane->first;

		if (job && job->full && lane->run < job->chunk.runs.count) {
			chunk = &job->chunk;
		} else if (job && job->full) {
			job->full = false;
			lane->run = 0;
			if (job->state == JOB_ENDED)
				drop_first(lane);
			pthread_cond_broadcast(&team->work);
		} else if (!team->thread_count) {
			work_for(team, lane);
		} else {
			pthread_cond_wait(&team->lines, &team->lock);
		}
	}
	pthread_mutex_unlock(&team->lock);
	return chunk;
}

static uint64_t segment_bytes(const struct team *team)
{
	if (team->print->segment_bytes)
		return team->print->segment_bytes;
	return team->gaps_only ? GAPS_SEGMENT_BYTES : TEXT_SEGMENT_BYTES;
}

static void init_walk(struct team *team, struct timed_walk *walk, const struct aux_queue *queues,
		      size_t number, const struct pt_offsets *offsets)
{
	const struct print_config *print = team->print;

	timed_walk_init(walk, &queues[number], print->pt, offsets, segment_bytes(team));
	walk->mapping = print->mapping;
	if (print->times.count && print->pt->conv.valid)
		walk->times = &print->times;
	if (print->index)
		walk->points = &print->index->queues[number];
}

static int init_lane(struct team *team, struct lane *lane, const struct aux_queue *queue)
{
	const struct print_config *print = team->print;

	lane->where.pid = queue->tid >= 0 ? queue->pid : -1;
	if (print->sideband && queue->cpu >= 0)
		lane->where.switches =
			sideband_switches(print->sideband, queue->cpu, &lane->where.switch_count);
	printer_init(&lane->printer, print, queue, &lane->where);
	lane->where.lessons = &team->lessons;
	return patch_lessons_add(&team->lessons, queue, &lane->where);
}

/* With many lanes each has fewer jobs, and at last shorter text. */
static void share_memory(struct team *team, unsigned threads)
{
	size_t lanes = team->lane_count ? team->lane_count : 1;
	size_t chunks = TEXT_BYTES / CHUNK_BYTES / lanes;

	team->lane_jobs = 1 + JOBS_PER_THREAD * threads;
	if (team->lane_jobs > chunks)
		team->lane_jobs = chunks ? (unsigned)chunks : 1;
	team->chunk_bytes = chunks ? CHUNK_BYTES : TEXT_BYTES / lanes;
}

static int start_threads(struct team *team, unsigned threads)
{
	if (threads > TEAM_THREADS_MAX)
		threads = TEAM_THREADS_MAX;
	share_memory(team, threads);
	if (threads <= 1 || team->in_order)
		return 0;
	pthread_mutex_lock(&team->lock); /* they begin when their number is known */
	while (team->thread_count < threads &&
	       !pthread_create(&team->threads[team->thread_count], NULL, work, team))
		team->thread_count++;
	pthread_mutex_unlock(&team->lock);
	return 0;
}

int team_init(struct team *team, const struct aux_queue *queues, size_t count,
	      const struct print_config *print, unsigned threads)
{
	struct pt_offsets offsets;

	*team = (struct team){ .print = print };
	team->gaps_only = is_about_gaps(&print->itrace);
	team->in_order = needs_order(print);
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->work, NULL);
	pthread_cond_init(&team->lines, NULL);
	code_init(&team->code, print->machines);
	team->lanes = calloc(count ? count : 1, sizeof(*team->lanes));
	if (!team->lanes || pt_offsets_learn(queues, count, print->pt, &print->mapping, &offsets))
		return -PTVM_NO_MEMORY;
	patch_lessons_init(&team->lessons, print->pt, print->machines, &offsets);
	for (size_t i = 0; i < count; i++) {
		struct lane *lane = &team->lanes[team->lane_count];

		if (queues[i].cpu >= 0 && !number_ranges_has(&print->cpus, queues[i].cpu))
			continue;
		team->lane_count++;
		init_walk(team, &lane->walk, queues, i, &offsets);
		if (init_lane(team, lane, &queues[i]))
			return -PTVM_NO_MEMORY;
	}
	return start_threads(team, threads);
}

void team_free(struct team *team)
{
	if (!team->print)
		return;
	pthread_mutex_lock(&team->lock);
	team->stop = true;
	pthread_cond_broadcast(&team->work);
	pthread_mutex_unlock(&team->lock);
	for (unsigned i = 0; i < team->thread_count; i++)
		pthread_join(team->threads[i], NULL);
	for (size_t i = 0; i < team->lane_count; i++) {
		while (team->lanes[i].first)
			drop_first(&team->lanes[i]);
		printer_free(&team->lanes[i].printer);
	}
	free(team->lanes);
	patch_lessons_free(&team->lessons);
	code_free(&team->code);
	pthread_cond_destroy(&team->lines);
	pthread_cond_destroy(&team->work);
	pthread_mutex_destroy(&team->lock);
}
