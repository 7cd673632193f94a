/* Parts of all queues to look at where there is too much trace to look at all of it: spread evenly
 * over it at first, and then over the times that are of interest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/trace_sources.h"
#include "decode/pt/pt_segment.h"

enum { SAMPLE_BYTES = 16 << 10 }; /* of trace in one part, about: from PSB to PSB */

/** A part: what begins with the first PSB in so many bytes of a queue. */
struct sample_part {
	size_t queue;
	uint64_t number; /* of it in the queue */
};

/** A part that was looked at, and the time from its beginning to its end in ns of perf's clock; 0
 * and UINT64_MAX where that is not known. */
struct sample_seen {
	struct sample_part part;
	uint64_t from_ns, to_ns;
};

struct trace_sample {
	const struct trace_sources *sources; /* where the queues are */
	struct {
		struct sample_seen *items; /* by part */
		size_t count, room;
	} seen;
};

/** Times of which more is to be known: all between these; 0 and UINT64_MAX: without a beginning or
 * an end. */
struct sample_times {
	uint64_t from_ns, to_ns;
};

/** How many parts a queue has. */
uint64_t trace_sample_parts(const struct aux_queue *queue);

/** Whether a part was looked at. */
bool trace_sample_has(const struct trace_sample *sample, const struct sample_part *part);

/** Note that a part was looked at, which was not before. Returns false when memory is out. */
bool trace_sample_add(struct trace_sample *sample, const struct sample_seen *seen);

/**
 * Choose parts that may have something of some times, and were not looked at: a quarter of them in
 * each queue next to the beginning of these times, a quarter next to the end, as something happened
 * there, and the others spread over all that there are.
 *
 * @most  parts, > 0
 * @ret   has room for so many; they are different ones, in order
 *
 * Returns how many parts were chosen; 0: there are no more, or memory is out.
 */
size_t trace_sample_choose(const struct trace_sample *sample, const struct sample_times *times,
			   size_t most, struct sample_part *ret);

/**
 * Begin to walk a queue at a PSB, as if nothing were known before it: it is cut at the grid of the
 * parts. In a guest the walk begins before that, so that it knows the time when it comes there.
 */
void trace_sample_enter(const struct trace_sources *sources, const struct aux_queue *queue,
			uint64_t psb, struct pt_walk *walk);

/** Free everything; accepts zeroes. */
void trace_sample_free(struct trace_sample *sample);
