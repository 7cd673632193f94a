/* The lines of all queues on their way out, in order of host time, with those of the recording's
 * records. One thread at a time has it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "decode/base/error.h"
#include "decode/print/chunk.h"
#include "decode/print/record_lines.h"
#include "decode/print/time_column.h"

/** Where text goes. */
struct timeline_output {
	int fd;
	uint64_t max_lines; /* 0: no limit */
	unsigned threads;   /* that decode; 1: none beside the caller's */
};

/** The lines of one queue that have not been written yet. */
struct timeline_lane {
	struct chunk_list chunks;
	size_t run;       /* of the first chunk, the next to be written */
	bool ended;       /* no more chunks will come */
	uint64_t from_ns; /* chunks to come have no lines before this time */
	/* By these it is in the heap; it may come later by now, but not earlier. */
	uint64_t heap_ns;   /* the time of its next lines, or one before it */
	bool heap_waits;    /* they are not there */
	size_t heap_record; /* as in print_run */
};

enum { TIMELINE_SLICES = 256 };

struct timeline {
	const struct timeline_output *output;
	struct timeline_lane *lanes; /* where times are the same the lower one is first */
	size_t lane_count;
	/* Those that have not ended, the first one on top. Only when a lane gets there it is looked
	 * whether it comes later by now. */
	struct timeline_lane **heap;
	size_t heap_count;
	bool is_ordered;
	struct record_lines records;
	struct time_column times;
	struct iovec slices[TIMELINE_SLICES]; /* lines to be written at once */
	int slice_count;
	struct text kept;       /* copies of those that are not in a chunk */
	struct chunk_list done; /* chunks that have been written; the caller takes them away */
	uint64_t lines;         /* so far; only counted if there is a limit */
	bool full;              /* the limit has been reached */
	bool written;           /* any line so far */
};

/**
 * Begin with room for `lanes`, of which `lane_count` is none so far.
 *
 * Returns 0 or -PTVM_NO_MEMORY; timeline_free() in any case.
 */
int timeline_init(struct timeline *timeline, size_t lanes, const struct print_config *print,
		  const struct timeline_output *output);

/** Whether there is something that certainly comes next. */
bool timeline_is_ready(struct timeline *timeline);

/** The lane without whose next lines nothing more can be written, as timeline_is_ready() or
 * timeline_write() found it; NULL none. */
struct timeline_lane *timeline_missed(const struct timeline *timeline);

/**
 * Write what certainly comes next, up to a lane that has not ended and whose chunk is not there.
 *
 * Returns 0; -PTVM_SYSTEM when output cannot be written (EPIPE: nobody reads on); -PTVM_NO_MEMORY.
 */
int timeline_write(struct timeline *timeline, struct ptvm_error *error);

/** Release all chunks and lanes. */
void timeline_free(struct timeline *timeline);
