/* The index of a recording: where in each queue a walk can begin (trace_points.h), kept in a file
 * beside the recording, so that what is late in a long trace is found as fast as what is early.
 * It is only a cache: without it nothing but speed is lost. */
#pragma once

#include <stddef.h>

#include "decode/base/bytes.h"
#include "decode/perf/perf_data.h"
#include "decode/pt/trace_points.h"

/** Zero-initialise before use. */
struct trace_index {
	char *path;                  /* NULL: it is not kept in a file */
	uint64_t identity;           /* of the recording, as it is now */
	struct trace_points *queues; /* by their order in the recording */
	size_t queue_count;
	size_t known;          /* points that the file had */
	const char *complaint; /* why the file there was not used; NULL none */
};

/**
 * Make an index of a recording, and read what is known from its file, if there is one:
 * `FILE.ptvm-index` beside the recording's data file. The file is not used if the recording was
 * copied or changed since, nor if it is somebody else's or damaged (`complaint`). A recording from
 * a pipe, or one in several files, has no such file.
 *
 * Returns 0 or -PTVM_NO_MEMORY; trace_index_free() in any case.
 */
int trace_index_open(const struct perf_data *data, struct trace_index *ret);

/**
 * Take the points in the bytes of an index file.
 *
 * Returns 0, -PTVM_BAD_INPUT with no points, and `complaint` set unless it is just of another
 * state, or -PTVM_NO_MEMORY.
 */
int trace_index_read(struct trace_index *index, struct bytes file);

/**
 * Keep the index in its file, if enough has become known since, and the directory can be written.
 * The file appears whole or not at all.
 *
 * Returns 0, also when it was not worth it, -PTVM_SYSTEM or -PTVM_NO_MEMORY.
 */
int trace_index_save(const struct trace_index *index, struct ptvm_error *error);

/** Release everything; accepts zeroes. */
void trace_index_free(struct trace_index *index);
