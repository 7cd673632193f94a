/* Pages of the mapped recording that are done with, given back to the kernel: what is read once
 * must not stay in memory. */
#pragma once

#include <stdint.h>

#include "decode/aux_queue.h"
#include "decode/base/bytes.h"

/**
 * Give back the pages of `part`, if it lies in `mapping`, which must be one of a file that is only
 * read: where somebody comes back, the bytes come from the file again.
 */
void aux_pages_release(const struct bytes *mapping, struct bytes part);

/** Give back the trace of a queue from one position of the stream to another. */
void aux_pages_release_trace(const struct bytes *mapping, const struct aux_queue *queue,
			     uint64_t from, uint64_t to);
