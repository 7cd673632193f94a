/* What a stretch of all queues teaches about changed code, for every segment alike: which
 * instructions are others than in the copy, and at what time. One disagreement often has several
 * explanations; of many, only the right one explains all and is never in the way. Learned when
 * first needed, and whoever asks gets the same. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/flow_mark.h"
#include "decode/pt_offsets.h"

/** A queue, and where its flow finds code (without `code`). */
struct lesson_source {
	const struct aux_queue *queue;
	struct flow_code where;
};

struct patch_lessons {
	const struct pt_config *config;
	const struct machines *machines;
	struct pt_offsets offsets;
	struct {
		struct lesson_source *items;
		size_t count, room;
	} sources;
	pthread_mutex_t lock;
	bool is_done;
	struct flow_patches patches;
};

/** Begin without sources; `config` and `machines` are borrowed. */
void patch_lessons_init(struct patch_lessons *lessons, const struct pt_config *config,
			const struct machines *machines, const struct pt_offsets *offsets);

/** Add a queue to learn from (borrowed). Returns 0 or -PTVM_NO_MEMORY. */
int patch_lessons_add(struct patch_lessons *lessons, const struct aux_queue *queue,
		      const struct flow_code *where);

/** Free everything; accepts zeroes. */
void patch_lessons_free(struct patch_lessons *lessons);

/** What there is to learn; any thread may ask, the first one waits for it. */
const struct flow_patches *patch_lessons_get(struct patch_lessons *lessons);

/**
 * Packets and code disagree: go back to the mark with what the lessons say, if that is something
 * and the flow has not heard of it yet.
 */
bool patch_lessons_apply(struct flow_run *run, const struct flow_mark *mark);
