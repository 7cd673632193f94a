/* What a sample or a record's trailer says, by its event's sample_type. */
#pragma once

#include <stdint.h>

#include "decode/perf/perf_data.h"

/** Fields that the event does not record are 0, or -1 where that is said. Bytes are the record's.
 */
struct perf_sample {
	uint64_t ip, time, address, id, period;
	int32_t pid, tid, cpu;  /* -1 unknown */
	struct bytes raw;       /* of a tracepoint */
	struct bytes aux;       /* trace before the sample */
	struct bytes callchain; /* u64 addresses, first to last */
	struct bytes branches;  /* of the kernel's perf_branch_entry, the last one first */
};

/**
 * Read the fields of a SAMPLE.
 *
 * @body   what follows the record's header
 *
 * Returns 0, or -PTVM_BAD_INPUT when they do not fit in `body` or when sample_type has bits that
 * are not known; fields read so far are in `ret`.
 */
int perf_sample_read(const struct perf_event *event, struct bytes body, struct perf_sample *ret);

/**
 * Read the trailer that ends the other records of an event with sample_id_all.
 * Returns 0, or -PTVM_BAD_INPUT when `body` is too short.
 */
int perf_trailer_read(const struct perf_event *event, struct bytes body, struct perf_sample *ret);

/** The sample id in a SAMPLE's `body`; 0 where there is none. `event` is any of the recording's: it
 * is at the same place for all of them. */
uint64_t perf_sample_id(const struct perf_event *event, struct bytes body);

/** As perf_sample_id() for a trailer. */
uint64_t perf_trailer_id(const struct perf_event *event, struct bytes body);
