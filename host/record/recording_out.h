/* A recording as it is written: a perf.data file that decodes at every moment.
 *
 * What describes the events goes first, then records and trace as they come, each appended whole.
 * Only at the end are features appended and the header told how long the data is: until then, and
 * if that never comes, a reader goes to the end of the file. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/ring_bytes.h"

enum { RECORDING_HEADER_SIZE = 104, RECORDING_ATTR_SIZE = 128 };

/** An event, and the ids that records name it by. */
struct recording_event {
	const void *attr; /* RECORDING_ATTR_SIZE bytes */
	const uint64_t *ids;
	size_t id_count;
	const char *name; /* told in a feature, see recording_features.h */
	size_t id_spare;  /* how many more can be added later */
};

/** A feature section; `number` 1 to 255, but not that of the trace's index, which is written
 * anyway. */
struct recording_feature {
	unsigned number;
	const void *data;
	size_t size;
};

/** Where a piece of trace comes from. */
struct recording_trace {
	uint64_t offset;    /* of its first byte in the trace of this queue */
	uint64_t reference; /* TSC, read after the kernel handed it out; not 0 */
	uint32_t queue;     /* one of these is one stream of bytes */
	int32_t tid, cpu;   /* -1: any */
};

/** Where the ids of an event are in the file. */
struct recording_ids {
	uint64_t offset;
	size_t count, room;
};

/** Zero-initialise before use. Records and trace may come from several threads. */
struct recording_out {
	int fd;
	pthread_mutex_t lock; /* of `end` and `index` */
	uint64_t start, end;  /* of the data, in the file */
	struct recording_ids *ids;
	size_t event_count;
	struct {
		struct recording_trace_entry {
			uint64_t offset, size;
		} * items;
		size_t count, room;
	} index;
};

/**
 * Begin a file that does not exist yet, which only its owner may read.
 * Returns 0, -PTVM_SYSTEM or -PTVM_NO_MEMORY. In any case recording_out_close() it.
 */
int recording_out_create(struct recording_out *out, const char *path,
			 const struct recording_event *events, size_t count,
			 struct ptvm_error *error);

/**
 * Name one more id of event number `event`.
 * Returns 0, -PTVM_NOT_FOUND (no spare one is left) or -PTVM_SYSTEM.
 */
int recording_out_add_id(struct recording_out *out, size_t event, uint64_t id,
			 struct ptvm_error *error);

/**
 * Append whole records, as the kernel wrote them.
 * Returns 0 or -PTVM_SYSTEM: nothing of them is in the file then.
 */
int recording_out_records(struct recording_out *out, const struct ring_bytes *bytes,
			  struct ptvm_error *error);

/**
 * Append a piece of trace. Returns 0, -PTVM_NO_MEMORY, or -PTVM_SYSTEM: where another thread has
 * written behind it already, its place in the file holds zeroes then, which are PAD packets.
 */
int recording_out_trace(struct recording_out *out, const struct recording_trace *trace,
			const struct ring_bytes *bytes, struct ptvm_error *error);

/**
 * Say that no record to come is older than the newest of the pass before the last; for readers that
 * sort as they go. Returns 0 or -PTVM_SYSTEM.
 */
int recording_out_round(struct recording_out *out, struct ptvm_error *error);

/**
 * Append the features, in order of their numbers, and complete the header.
 * Returns 0 or -PTVM_SYSTEM: the file is as it was then.
 */
int recording_out_finish(struct recording_out *out, const struct recording_feature *features,
			 size_t count, struct ptvm_error *error);

/** How many bytes the file has by now. */
uint64_t recording_out_size(struct recording_out *out);

/** Accepts zeroes, and what is not finished. */
void recording_out_close(struct recording_out *out);
