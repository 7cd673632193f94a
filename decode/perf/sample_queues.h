/* Which queue's trace tells what led to each sample of the recording: that of the sample's CPU or
 * thread. Where a sample does not say its CPU, that is the one on which its thread ran last. */
#pragma once

#include <stddef.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/sideband.h"
#include "decode/pt/aux_queue.h"

/** Zero-initialise before use. */
struct sample_queues {
	const struct aux_queue *queues;
	struct sample_list {
		size_t *items; /* numbers of records, in their order; an array of spool.h */
		size_t count, room;
	} * lists; /* of each queue */
	size_t count;
};

/**
 * Sort the samples of a recording by queue.
 *
 * @sideband  who ran where; NULL: nobody knows
 * @queues    must outlive the result
 *
 * Returns 0 or -PTVM_NO_MEMORY; sample_queues_free() in any case.
 */
int sample_queues_build(const struct perf_data *data, const struct sideband *sideband,
			const struct aux_queue *queues, size_t count, struct sample_queues *ret);

/** The samples of one of the queues. */
const struct sample_list *sample_queues_of(const struct sample_queues *samples,
					   const struct aux_queue *queue);

/** Give pages of the lists back as far as they lie in files (spool.h). */
void sample_queues_rest(const struct sample_queues *samples);

/** Release everything; accepts zeroes. */
void sample_queues_free(struct sample_queues *samples);
