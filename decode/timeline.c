#include "decode/timeline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "decode/team.h"

struct timeline {
	const struct timeline_output *output;
	struct timeline_result *result;
	struct team team;
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

static int write_runs(struct timeline *timeline, struct lane *lane, const struct chunk *chunk,
		      size_t to, struct ptvm_error *error)
{
	const struct print_run *runs = chunk->runs.items;
	size_t start = lane->run ? runs[lane->run - 1].end : 0;
	size_t size = runs[to - 1].end - start;
	const char *data = chunk->text.data + start;

	lane->run = to;
	if (timeline->output->max_lines)
		size = limit(timeline, data, size);
	return write_all(timeline->output->fd, data, size, error);
}

static uint64_t time_of(const struct chunk *chunk, const struct lane *lane)
{
	return chunk->runs.items[lane->run].time_ns;
}

/* The lane whose next lines come first, and the time up to which it may go on alone. */
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
			*until = time;
		}
	}
	return best;
}

static int merge(struct timeline *timeline, struct ptvm_error *error)
{
	while (!timeline->full) {
		const struct chunk *chunk;
		uint64_t until;
		struct lane *lane = first(&timeline->team, &chunk, &until);
		size_t to;
		int r;

		if (!lane)
			break;
		for (to = lane->run + 1; to < chunk->runs.count; to++)
			if (chunk->runs.items[to].time_ns > until)
				break;
		r = write_runs(timeline, lane, chunk, to, error);
		if (r)
			return r;
	}
	if (timeline->team.out_of_memory)
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
	r = team_init(&timeline.team, queues, count, print, output->threads);
	r = r ? ptvm_fail(error, PTVM_NO_MEMORY, "out of memory") : merge(&timeline, error);
	team_free(&timeline.team);
	memcpy(ret->gaps, timeline.team.gaps, sizeof(ret->gaps));
	ret->insns = timeline.team.insns;
	ret->corrections = timeline.team.corrections;
	return r;
}
