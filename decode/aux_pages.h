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

/** How a mapping is going to be read. */
enum page_habit {
	PAGES_NEARBY,    /* what follows, too: the kernel reads on by itself */
	PAGES_SCATTERED, /* a little here and there: only what is asked for */
};

/** Tell the kernel how all of a mapping will be read from now on; it begins as PAGES_NEARBY. */
void aux_pages_expect(const struct bytes *mapping, enum page_habit habit);

/** Let the kernel begin to read a part of the mapping, as far as it has it. */
void aux_pages_prefetch(const struct bytes *mapping, uint64_t offset, uint64_t size);

/** Who reads a file from its start to its end, and comes back only now and then. */
struct page_trail {
	const struct bytes *mapping;
	const uint8_t *from; /* where pages may be in memory; NULL: from the start */
};

/** The reader has come to `p`, in the mapping or anywhere: much that lies behind is given back. */
void page_trail_step(struct page_trail *trail, const uint8_t *p);
