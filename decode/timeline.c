#include "decode/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/pt_offset_learn.h"
#include "decode/pt_segment.h"

/* Trace bytes that a segment has at least. */
enum { SEGMENT_BYTES = 256 << 10 };

/* One queue on its way: cut into segments, followed, printed. */
struct source {
	struct pt_walk walk;
	struct pt_segment segment;
	struct pt_flow flow;
	struct flow_batch batch;
	struct printer printer;
	struct flow_code where;
	bool in_segment, ended;
	size_t run; /* the next of the printer's runs to write */
	uint64_t corrections;
};

struct timeline {
	const struct print_config *print;
	const struct timeline_output *output;
	struct timeline_result *result;
	struct source *sources;
	size_t count;
	struct code code;
	struct pt_offsets offsets;
	bool full;      /* --max-lines reached */
	bool gaps_only; /* no event is wanted that is about flow */
};

static int write_all(struct timeline *timeline, const char *data, size_t size,
		     struct ptvm_error *error)
{
	while (size) {
		ssize_t written = write(timeline->output->fd, data, size);

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

static int write_runs(struct timeline *timeline, struct source *source, size_t to,
		      struct ptvm_error *error)
{
	const struct print_run *runs = source->printer.runs.items;
	size_t start = source->run ? runs[source->run - 1].end : 0;
	size_t size = (to ? runs[to - 1].end : 0) - start;
	const char *data = source->printer.out.data + start;

	source->run = to;
	if (timeline->output->max_lines)
		size = limit(timeline, data, size);
	return write_all(timeline, data, size, error);
}

/* Segments that end before the first wanted time need no decoding. */
static bool is_wanted(const struct timeline *timeline, const struct source *source)
{
	const struct time_ranges *times = &timeline->print->times;
	const struct time_conv *conv = &timeline->print->pt->conv;
	uint64_t end = source->walk.ended ? UINT64_MAX : source->walk.clock.now;
	uint64_t start = source->segment.clock.now;

	if (!times->count || !conv->valid || !start || !end)
		return true;
	for (unsigned i = 0; i < times->count; i++)
		if ((end == UINT64_MAX || time_conv_ns(conv, end) >= times->items[i].from) &&
		    time_conv_ns(conv, start) <= times->items[i].to)
			return true;
	return false;
}

/* The pages of a segment that is done are the kernel's again: memory must not grow with the trace.
 * (They would be read again from the file, but nobody comes back.) */
static void release(const struct timeline *timeline, const struct source *source)
{
	const struct bytes *mapping = &timeline->print->mapping;
	const struct pt_segment *segment = &source->segment;
	const struct aux_span *span = pt_span_at(segment->queue, segment->from);
	const struct aux_span *end = segment->queue->spans + segment->queue->count;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	for (; span && span < end && span->position < segment->to; span++) {
		uint64_t skip = segment->from > span->position ? segment->from - span->position : 0;
		uint64_t size = segment->to - span->position;
		uintptr_t from = ((uintptr_t)span->data + skip + page) & ~page;
		uintptr_t to = ((uintptr_t)span->data + (size < span->size ? size : span->size)) &
			       ~page;

		if (span->data >= mapping->data && span->data < mapping->data + mapping->size &&
		    from < to)
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
}

static void next_segment(struct timeline *timeline, struct source *source)
{
	do {
		if (pt_walk_next(&source->walk, &source->segment)) {
			source->ended = true;
			return;
		}
	} while (!is_wanted(timeline, source));
	pt_flow_init(&source->flow, &source->segment, timeline->print->pt, &source->where,
		     timeline->gaps_only);
	source->in_segment = true;
}

/* No block may be in use: every source stands between two segments or looks its block up again. */
static void trim(struct timeline *timeline)
{
	if (!code_is_full(&timeline->code))
		return;
	for (size_t i = 0; i < timeline->count; i++)
		timeline->sources[i].flow.block = NULL;
	code_trim(&timeline->code);
}

/* Decode until there are lines to write or the queue has ended. */
static void refill(struct timeline *timeline, struct source *source)
{
	printer_clear(&source->printer);
	source->run = 0;
	while (!source->printer.runs.count && !source->ended) {
		if (!source->in_segment) {
			next_segment(timeline, source);
			continue;
		}
		if (pt_flow_run(&source->flow, &source->batch)) {
			source->in_segment = false;
			release(timeline, source);
			timeline->result->insns += source->flow.insns;
			source->corrections +=
				source->flow.clock.corrections - source->segment.clock.corrections;
		}
		printer_print(&source->printer, &source->batch);
		trim(timeline);
	}
}

static uint64_t time_of(const struct source *source)
{
	if (source->run >= source->printer.runs.count)
		return UINT64_MAX;
	return source->printer.runs.items[source->run].time_ns;
}

/* The source whose next lines come first, and the time up to which it may go on alone. */
static struct source *first(struct timeline *timeline, uint64_t *until)
{
	struct source *best = NULL;

	*until = UINT64_MAX;
	for (size_t i = 0; i < timeline->count; i++) {
		struct source *source = &timeline->sources[i];

		if (source->run >= source->printer.runs.count)
			continue;
		if (!best || time_of(source) < time_of(best)) {
			if (best)
				*until = time_of(best);
			best = source;
		} else if (time_of(source) < *until) {
			*until = time_of(source);
		}
	}
	return best;
}

static int merge(struct timeline *timeline, struct ptvm_error *error)
{
	for (size_t i = 0; i < timeline->count; i++)
		refill(timeline, &timeline->sources[i]);
	while (!timeline->full) {
		uint64_t until;
		struct source *source = first(timeline, &until);
		size_t to;
		int r;

		if (!source)
			return 0;
		for (to = source->run + 1; to < source->printer.runs.count; to++)
			if (source->printer.runs.items[to].time_ns > until)
				break;
		r = write_runs(timeline, source, to, error);
		if (r)
			return r;
		if (to == source->printer.runs.count)
			refill(timeline, source);
	}
	return 0;
}

static void init_source(struct timeline *timeline, struct source *source,
			const struct aux_queue *queue)
{
	const struct print_config *print = timeline->print;

	source->where.code = &timeline->code;
	source->where.pid = queue->tid >= 0 ? queue->pid : -1;
	if (print->sideband && queue->cpu >= 0)
		source->where.switches =
			sideband_switches(print->sideband, queue->cpu, &source->where.switch_count);
	pt_walk_init(&source->walk, queue, print->pt, &timeline->offsets, SEGMENT_BYTES);
	printer_init(&source->printer, print, queue, &source->where);
}

static bool is_about_gaps(const struct itrace *itrace)
{
	return !itrace->instructions && !itrace->branches && !itrace->calls && !itrace->returns &&
	       !itrace->transactions && !itrace->ptwrites && !itrace->power && !itrace->interrupts;
}

static void add_up(struct timeline *timeline)
{
	struct timeline_result *result = timeline->result;

	for (size_t i = 0; i < timeline->count; i++) {
		const struct source *source = &timeline->sources[i];

		for (int kind = 0; kind < GAP_KINDS; kind++)
			result->gaps[kind] += source->printer.gaps[kind];
		result->corrections += source->corrections;
	}
}

int timeline_print(const struct aux_queue *queues, size_t count, const struct print_config *print,
		   const struct timeline_output *output, struct timeline_result *ret,
		   struct ptvm_error *error)
{
	struct timeline timeline = { .print = print, .output = output, .result = ret };
	int r;

	*ret = (struct timeline_result){ 0 };
	timeline.sources = calloc(count ? count : 1, sizeof(*timeline.sources));
	if (!timeline.sources)
		return ptvm_fail(error, PTVM_NO_MEMORY, "out of memory");
	timeline.gaps_only = is_about_gaps(&print->itrace);
	code_init(&timeline.code, print->machines);
	pt_offsets_learn(queues, count, print->pt, &timeline.offsets);
	for (size_t i = 0; i < count; i++) {
		ret->bytes += queues[i].size;
		if (queues[i].cpu < 0 || number_ranges_has(&print->cpus, queues[i].cpu))
			init_source(&timeline, &timeline.sources[timeline.count++], &queues[i]);
	}
	r = merge(&timeline, error);
	add_up(&timeline);
	for (size_t i = 0; i < timeline.count; i++)
		printer_free(&timeline.sources[i].printer);
	code_free(&timeline.code);
	free(timeline.sources);
	return r;
}
