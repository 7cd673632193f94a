#include "decode/flow/sample_segments.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/pt/aux_pages.h"

enum { PART_MOST = 4 * SAMPLE_BYTES }; /* of a part, where PSBs are far from each other */

static bool add(struct sample_segments *segments, size_t source, const struct pt_segment *segment)
{
	const struct sample_segment item = { *segment, (uint32_t)source };

	return vec_push(segments, item);
}

static int read_queue(const struct trace_sources *sources, size_t number,
		      struct sample_segments *ret)
{
	struct pt_segment segment;
	struct pt_walk walk;

	pt_walk_init(&walk, sources->items[number].queue, sources->config, &sources->offsets,
		     SAMPLE_BYTES);
	while (!pt_walk_next(&walk, &segment))
		if (!add(ret, number, &segment))
			return -PTVM_NO_MEMORY;
	return 0;
}

/* The next segment, or if that goes too far what was read of it. Returns false behind the last. */
static bool next(struct pt_walk *walk, struct pt_segment *ret)
{
	if (walk->ended || pt_cursor_position(&walk->cursor) >= walk->stop)
		return false;
	if (!pt_walk_next(walk, ret))
		return true;
	*ret = walk->segment;
	ret->to = pt_cursor_position(&walk->cursor);
	return ret->to > ret->from;
}

/* The segments that begin in a part, or behind it if it has no PSB. */
static int read_part(const struct trace_sources *sources, const struct sample_part *part,
		     struct sample_segments *ret)
{
	const struct aux_queue *queue = sources->items[part->queue].queue;
	const struct sample_segment *last = ret->count ? &ret->items[ret->count - 1] : NULL;
	uint64_t psb = pt_psb_after(queue, part->number * SAMPLE_BYTES), from;
	struct pt_segment segment;
	struct pt_walk walk;
	bool is_added = true;

	if (psb >= queue->size ||
	    (last && last->source == part->queue && last->segment.from >= psb))
		return 0;
	trace_sample_enter(sources, queue, psb, &walk);
	walk.stop = psb + PART_MOST;
	from = walk.segment.from;
	while (is_added && walk.segment.from < psb + SAMPLE_BYTES && next(&walk, &segment))
		is_added = segment.from < psb || add(ret, part->queue, &segment);
	aux_pages_release_trace(&sources->mapping, queue, from, pt_cursor_position(&walk.cursor));
	return is_added ? 0 : -PTVM_NO_MEMORY;
}

/* Parts are far from each other: let the kernel read all of them at once, with what is before them,
 * where the time may have to be looked for, and little else around them. */
static void prefetch_parts(const struct trace_sources *sources, const struct sample_part *parts,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t from = parts[i].number * SAMPLE_BYTES;
		uint64_t before = from < SAMPLE_BYTES ? from : SAMPLE_BYTES;

		aux_pages_prefetch_trace(&sources->mapping, sources->items[parts[i].queue].queue,
					 from - before, from + 2 * SAMPLE_BYTES);
	}
}

static int read_parts(const struct trace_sources *sources, size_t most, struct sample_segments *ret)
{
	static const struct sample_times all_times = { 0, UINT64_MAX };
	const struct trace_sample sample = { .sources = sources };
	struct sample_part *parts = calloc(most, sizeof(*parts));
	size_t count = parts ? trace_sample_choose(&sample, &all_times, most, parts) : 0;
	int r = parts ? 0 : -PTVM_NO_MEMORY;

	aux_pages_expect(&sources->mapping, PAGES_SCATTERED);
	prefetch_parts(sources, parts, count);
	for (size_t i = 0; i < count && !r; i++)
		r = read_part(sources, &parts[i], ret);
	aux_pages_expect(&sources->mapping, PAGES_NEARBY);
	free(parts);
	return r;
}

int sample_segments_read(const struct trace_sources *sources, uint64_t most,
			 struct sample_segments *ret)
{
	int r = 0;

	if (trace_sources_size(sources) > most)
		return read_parts(sources, most / SAMPLE_BYTES, ret);
	for (size_t i = 0; i < sources->count && !r; i++)
		r = read_queue(sources, i, ret);
	return r;
}

void sample_segments_free(struct sample_segments *segments)
{
	vec_free(segments);
}
