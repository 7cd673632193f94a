#include "decode/timeline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "decode/record_lines.h"
#include "decode/team.h"
#include "decode/time_column.h"

struct timeline {
	const struct timeline_output *output;
	struct timeline_result *result;
	struct team team;
	struct record_lines records;
	struct time_column times;
	bool full; /* --max-lines reached */
};

static int write_all(int fd, const char *data, size_t size, struct ptvm_error *error)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return ptvm_fail_errno(error, "cannot write output");
		data += written;
		size -= (size_t)written;
	}
	return 0;
}

/* The part of the text that --max-lines still allows. */
static size_t limit(struct timeline *timeline, const char *data, size_t size)
{
	const char *p = data;

	while (timeline->result->lines < timeline->output->max_lines && p < data + size) {
		p = memchr(p, '\n', (size_t)(data + size - p));
		p = p ? p + 1 : data + size;
		timeline->result->lines++;
	}
	timeline->full = timeline->result->lines >= timeline->output->max_lines;
	return (size_t)(p - data);
}

static int write_lines(struct timeline *timeline, const char *data, size_t size,
		       struct ptvm_error *error)
{
	if (timeline->output->max_lines)
		size = limit(timeline, data, size);
	return write_all(timeline->output->fd, data, size, error);
}

/* The same for lines of one time, which is to be filled in. */
static int write_timed(struct timeline *timeline, const char *data, size_t size, uint64_t time_ns,
		       struct ptvm_error *error)
{
	struct time_column *times = &timeline->times;

	if (!time_column_waits(times))
		return write_lines(timeline, data, size, error);
	time_column_fill(times, data, size, time_ns);
	return write_lines(timeline, times->text.data, times->text.size, error);
}

static int write_runs(struct timeline *timeline, struct lane *lane, const struct chunk *chunk,
		      size_t to, struct ptvm_error *error)
{
	const struct print_run *runs = chunk->runs.items;
	bool one_by_one = time_column_waits(&timeline->times);
	int r = 0;

	while (!r && lane->run < to && !timeline->full) {
		size_t start = lane->run ? runs[lane->run - 1].end : 0;
		size_t next = one_by_one ? lane->run + 1 : to;

		r = write_timed(timeline, chunk->text.data + start, runs[next - 1].end - start,
				runs[lane->run].time_ns, error);
		lane->run = next;
	}
	return r;
}

static uint64_t time_of(const struct chunk *chunk, const struct lane *lane)
{
	return chunk->runs.items[lane->run].time_ns;
}

/* The lane whose next lines come first, the lower one of the same time; and the time before which
 * it may go on alone. */
static struct lane *first(struct team *team, const struct chunk **ret, uint64_t *until)
{
	struct lane *best = NULL;
	uint64_t best_time = 0;

	*until = UINT64_MAX;
	for (size_t i = 0; i < team->lane_count; i++) {
		struct lane *lane = &team->lanes[i];
		const struct chunk *chunk = team_lines(team, lane);
		uint64_t time;

		if (!chunk)
			continue;
		time = time_of(chunk, lane);
		if (!best || time < best_time) {
			*until = best ? best_time : *until;
			best = lane;
			best_time = time;
			*ret = chunk;
		} else if (time < *until) {
			*until = time + 1; /* a lane below that one */
		}
	}
	return best;
}

/* Write what comes next, of a lane or the recording's records: these first of the same time.
 * Returns 0, -PTVM_END when all is written, or an error. */
static int write_next(struct timeline *timeline, struct ptvm_error *error)
{
	struct record_lines *records = &timeline->records;
	const struct chunk *chunk;
	uint64_t until;
	struct lane *lane = first(&timeline->team, &chunk, &until);
	size_t to;
	int r;

	if (records->time_ns != UINT64_MAX && (!lane || records->time_ns <= time_of(chunk, lane))) {
		r = write_timed(timeline, records->text.data, records->text.size, records->time_ns,
				error);
		record_lines_next(records);
		return r;
	}
	if (!lane)
		return -PTVM_END;
	for (to = lane->run + 1; to < chunk->runs.count; to++)
		if (chunk->runs.items[to].time_ns >= until ||
		    chunk->runs.items[to].time_ns >= records->time_ns)
			break;
	return write_runs(timeline, lane, chunk, to, error);
}

static int merge(struct timeline *timeline, struct ptvm_error *error)
{
	int r = 0;

	while (!r && !timeline->full)
		r = write_next(timeline, error);
	if (r && r != -PTVM_END)
		return r;
	if (timeline->team.out_of_memory || timeline->times.text.failed)
		return ptvm_fail(error, PTVM_NO_MEMORY, "out of memory");
	return 0;
}

int timeline_print(const struct aux_queue *queues, size_t count, const struct print_config *print,
		   const struct timeline_output *output, struct timeline_result *ret,
		   struct ptvm_error *error)
{
	struct timeline timeline = { .output = output, .result = ret };
	int r;

	*ret = (struct timeline_result){ 0 };
	for (size_t i = 0; i < count; i++)
		ret->bytes += queues[i].size;
	timeline.times = (struct time_column){ .relative = print->relative_time,
					       .delta = print->delta_time,
					       .nanoseconds = print->nanoseconds };
	r = record_lines_init(&timeline.records, print);
	if (!r)
		r = team_init(&timeline.team, queues, count, print, output->threads);
	r = r ? ptvm_fail(error, PTVM_NO_MEMORY, "out of memory") : merge(&timeline, error);
	team_free(&timeline.team);
	record_lines_free(&timeline.records);
	text_free(&timeline.times.text);
	memcpy(ret->gaps, timeline.team.gaps, sizeof(ret->gaps));
	ret->insns = timeline.team.insns;
	ret->corrections = timeline.team.corrections;
	ret->translated = timeline.team.translated;
	ret->labels = timeline.team.labels.count;
	ret->first_label = label_list_lowest(&timeline.team.labels);
	return r;
}
