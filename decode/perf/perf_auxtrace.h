/* AUXTRACE records and AUX samples -> queues of spans. */
#pragma once

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_walk.h"

/** A buffer of trace as it came, not yet in its queue. */
struct aux_piece {
	struct aux_span span;
	uint32_t index;
	int32_t cpu, tid;
	uint32_t order; /* of arrival */
};

/** Zero-initialise before use. */
struct perf_auxtrace {
	struct {
		struct aux_piece *items;
		size_t count, room;
	} pieces;
};

/** Take the trace of an AUXTRACE record. Returns 0, -PTVM_BAD_INPUT (more buffers than can be
 * counted) or -PTVM_NO_MEMORY. */
int perf_auxtrace_add(struct perf_auxtrace *auxtrace, const struct perf_item *item);

/** Take the trace `aux` in a SAMPLE, when it has some. Errors as perf_auxtrace_add(). */
int perf_auxtrace_add_sample(struct perf_auxtrace *auxtrace, const struct perf_data *data,
			     const struct perf_record *record, struct bytes aux);

/**
 * Make data->queues of all pieces, in order of arrival: the overlaps of snapshots are cut off, the
 * padding between buffers is left out, and spans end where AUX records say that data was lost.
 * `data` needs its pt and records. More queues than a machine can have CPUs are left out.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int perf_auxtrace_finish(struct perf_auxtrace *auxtrace, struct perf_data *data);

/** Release the pieces. */
void perf_auxtrace_deinit(struct perf_auxtrace *auxtrace);
