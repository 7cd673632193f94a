/* Gives pages of the mapped recording back to the kernel once they have been read. A trace is
 * mostly read once, and may be larger than memory. */
#pragma once

#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/pt/aux_queue.h"

/**
 * Give back the pages of `part`, if it lies in `mapping`, a read-only mapping of a file: a later
 * access reads the file again.
 */
void aux_pages_release(const struct bytes *mapping, struct bytes part);

/** Give back the trace of a queue from one position of the stream to another. */
void aux_pages_release_trace(const struct bytes *mapping, const struct aux_queue *queue,
			     uint64_t from, uint64_t to);

/** For a walk that does not go back, from `*held` on, and is at `to`: give back what it has passed,
 * a megabyte at a time. `*held` is then `to`. */
void aux_pages_pass(const struct bytes *mapping, const struct aux_queue *queue, uint64_t *held,
		    uint64_t to);

/** How a mapping is going to be read. */
enum page_habit {
	PAGES_NEARBY,    /* what follows, too: the kernel reads on by itself */
	PAGES_SCATTERED, /* a little here and there: only what is asked for */
};

/** Tell the kernel how all of a mapping will be read from now on; it begins as PAGES_NEARBY. */
void aux_pages_expect(const struct bytes *mapping, enum page_habit habit);

/** Let the kernel begin to read a part of the mapping, as far as it has it. */
void aux_pages_prefetch(const struct bytes *mapping, uint64_t offset, uint64_t size);

/** As aux_pages_prefetch() for the trace of a queue from one position of the stream to another. */
void aux_pages_prefetch_trace(const struct bytes *mapping, const struct aux_queue *queue,
			      uint64_t from, uint64_t to);

/** Where a reader is who goes through a file from start to end, and seldom goes back. */
struct page_trail {
	const struct bytes *mapping;
	const uint8_t *from; /* where pages may be in memory; NULL: from the start */
	const uint8_t *at;   /* the reader */
	size_t held;         /* bytes behind it that may be in memory */
};

/** The reader has read all up to `p`, which need not be in the mapping. What lies behind it is
 * given back, some megabytes at a time. */
void page_trail_step(struct page_trail *trail, const uint8_t *p);

/** As page_trail_step(), where the reader has read little between the former place and `p` if they
 * are far from each other. */
void page_trail_leap(struct page_trail *trail, const uint8_t *p);
