/* The events of a recording: their attrs, their names, and the ids by which records refer to them.
 */
#pragma once

#include "decode/perf/perf_data.h"

/**
 * Add the event of one attr.
 *
 * @attr   perf_event_attr and whatever follows it; its own size field says where it ends
 * @ids    u64 sample ids
 *
 * Returns the attr's size, -PTVM_BAD_INPUT when it does not fit, or -PTVM_NO_MEMORY.
 */
int perf_event_add(struct perf_data *data, struct bytes attr, struct bytes ids);

/** The size that the attr at the start of `attr` says it has; 0 when it cannot be one. */
uint32_t perf_event_attr_size(struct bytes attr);

/** Name the event that `id` belongs to, after perf_event_index_ids(); `name` must live as long as
 * `data`. */
void perf_event_name(struct perf_data *data, uint64_t id, const char *name);

/** The event, queue and machine that an id stands for; NULL: unknown. */
const struct perf_id *perf_event_find_id(const struct perf_data *data, uint64_t id);

/** Build data->ids when all events and all of ID_INDEX are there. Returns 0 or -PTVM_NO_MEMORY. */
int perf_event_index_ids(struct perf_data *data);
