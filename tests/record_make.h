/* One record as it lies in a file, in memory of just its size: a sanitizer sees reads past it. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "decode/perf/perf_data.h"

/** Make one of a body of `size` bytes; record_drop() when done. Out of memory aborts the test. */
static inline struct perf_record record_make(uint16_t type, uint16_t misc, const void *body,
					     size_t size)
{
	const uint16_t total = (uint16_t)(8 + size);
	const uint32_t wide_type = type;
	uint8_t *data = malloc(total);

	if (!data)
		abort();
	memcpy(data, &wide_type, 4);
	memcpy(data + 4, &misc, 2);
	memcpy(data + 6, &total, 2);
	if (size)
		memcpy(data + 8, body, size);
	return (struct perf_record){ .data = data,
				     .type = type,
				     .misc = misc,
				     .size = total,
				     .pid = -1,
				     .tid = -1,
				     .cpu = -1 };
}

/** Release it. */
static inline void record_drop(struct perf_record *record)
{
	free((void *)record->data);
	record->data = NULL;
}
