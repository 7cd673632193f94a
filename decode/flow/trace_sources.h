/* The queues of a recording, for what can only be found out from all of them: which code was
 * patched since it was copied (patch_inference.h), and which was replaced (code_visits.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/flow/pt_flow.h"
#include "decode/pt/pt_offsets.h"

/** A queue, and where its flow finds code (without `code`). */
struct trace_source {
	const struct aux_queue *queue;
	struct flow_code where;
};

/** Queues and all else that is pointed to is borrowed. */
struct trace_sources {
	struct trace_source *items;
	size_t count, room;
	const struct pt_config *config;
	const struct machines *machines;
	struct pt_offsets offsets;
	struct bytes mapping; /* of the trace; empty: it is in memory */
};

/** Add a queue. Returns 0 or -PTVM_NO_MEMORY. */
int trace_sources_add(struct trace_sources *sources, const struct aux_queue *queue,
		      const struct flow_code *where);

/** Bytes of trace in all queues. */
uint64_t trace_sources_size(const struct trace_sources *sources);

/** Free the list; accepts zeroes. */
void trace_sources_free(struct trace_sources *sources);
