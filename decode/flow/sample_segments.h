/* Segments to learn from: those of all queues, or where there is too much trace for that, of parts
 * that are spread evenly over it. */
#pragma once

#include "decode/flow/trace_sample.h"

struct sample_segment {
	struct pt_segment segment;
	uint32_t source; /* its queue's number */
	uint64_t until;  /* the host's time where it ends, once a run has gone through it */
};

/** Zero-initialise before use. */
struct sample_segments {
	struct sample_segment *items; /* by source, and in the order of the stream */
	size_t count, room;
};

/**
 * Cut a sample of all queues into segments of SAMPLE_BYTES, about.
 *
 * @most  bytes of trace; where queues have no more, all of it is the sample
 * @ret   empty; release with sample_segments_free(), also after a failure
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int sample_segments_read(const struct trace_sources *sources, uint64_t most,
			 struct sample_segments *ret);

/** Free everything; accepts zeroes. */
void sample_segments_free(struct sample_segments *segments);
