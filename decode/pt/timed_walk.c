#include "decode/pt/timed_walk.h"

#include "decode/base/error.h"
#include "decode/pt/aux_pages.h"

void timed_walk_init(struct timed_walk *walk, const struct aux_queue *queue,
		     const struct pt_config *config, const struct pt_offsets *offsets,
		     uint64_t min_size)
{
	*walk = (struct timed_walk){ .points = NULL };
	pt_walk_init(&walk->walk, queue, config, offsets, min_size);
	walk->walk.grid = TRACE_POINT_BYTES;
}

/* A time of the trace in ns; 0 unknown, which is as early as can be. */
static uint64_t in_ns(const struct timed_walk *walk, uint64_t tsc)
{
	return tsc ? time_conv_ns(&walk->walk.config->conv, tsc) : 0;
}

/* When the next wanted time begins, at or after a time in ns, or has begun; false when there is
 * none any more. */
static bool next_wanted(const struct time_ranges *times, uint64_t ns, uint64_t *ret)
{
	bool found = false;

	for (unsigned i = 0; i < times->count; i++) {
		const struct time_range *range = &times->items[i];

		if (range->to < ns || (found && range->from >= *ret))
			continue;
		*ret = range->from;
		found = true;
	}
	return found;
}

/* One segment on. A new point of the grid is kept. */
static int step(struct timed_walk *walk, struct pt_segment *ret)
{
	const struct pt_segment *open = &walk->walk.segment;
	uint64_t from = open->from;
	int r = pt_walk_next(&walk->walk, ret);

	if (!r && walk->points && !walk->walk.ended && !open->fresh &&
	    open->from / walk->walk.grid > from / walk->walk.grid)
		(void)trace_points_add(walk->points, open); /* without it: slower later, no worse */
	return r;
}

/* Give back the pages of what was walked up to here, which nobody wants. */
static void pass(struct timed_walk *walk, uint64_t to)
{
	aux_pages_pass(&walk->mapping, walk->walk.segment.queue, &walk->held, to);
}

/* Walk up to a point. Returns whether the walk knows there what the point says. */
static bool arrives_at(struct timed_walk *walk, size_t index)
{
	uint64_t position = walk->points->items[index].position;
	const struct pt_segment *open = &walk->walk.segment;
	struct pt_segment passed;

	walk->held = open->from;
	while (open->from < position && !pt_walk_next(&walk->walk, &passed))
		pass(walk, passed.to);
	return open->from == position && !walk->walk.ended &&
	       trace_points_equal(walk->points, index, open);
}

/* Go to the last point before a time, if that is ahead. The points may come from a file that is not
 * about this trace: so the walk begins one point earlier, and must arrive with the same
 * knowledge. */
static void skip_to(struct timed_walk *walk, uint64_t time_ns)
{
	const struct pt_segment start = walk->walk.segment;
	size_t count = trace_points_before(walk->points, &walk->walk.config->conv, time_ns);
	struct pt_segment at;

	if (!count || walk->points->items[count - 1].position <= start.from)
		return;
	if (count > 1 && walk->points->items[count - 2].position > start.from) {
		at = trace_points_segment(walk->points, count - 2, start.queue, walk->walk.config);
		pt_walk_resume(&walk->walk, &at);
	}
	if (arrives_at(walk, count - 1))
		return;
	trace_points_drop(walk->points);
	pt_walk_resume(&walk->walk, &start);
}

/* Whether a segment has something of a wanted time, or time is not known. */
static bool is_wanted(const struct timed_walk *walk, const struct pt_segment *segment)
{
	uint64_t last = walk->walk.segment.clock.now; /* the latest time of its lines */
	uint64_t start = in_ns(walk, segment->clock.now);
	uint64_t end = walk->walk.ended || !last ? UINT64_MAX : in_ns(walk, last);

	for (unsigned i = 0; i < walk->times->count; i++)
		if (end >= walk->times->items[i].from && start <= walk->times->items[i].to)
			return true;
	return false;
}

int timed_walk_next(struct timed_walk *walk, struct pt_segment *ret)
{
	while (!walk->walk.ended) {
		uint64_t wanted_ns = 0;
		int r;

		if (walk->times &&
		    !next_wanted(walk->times, in_ns(walk, walk->walk.segment.clock.now),
				 &wanted_ns))
			return -PTVM_END;
		if (walk->times && walk->points)
			skip_to(walk, wanted_ns);
		r = step(walk, ret);
		if (r || !walk->times)
			return r;
		if (is_wanted(walk, ret)) {
			walk->held = ret->to;
			return 0;
		}
		pass(walk, ret->to);
	}
	return -PTVM_END;
}
