/* The records of a recording one after the other, as they lie in its files: over trace bytes,
 * inside of compressed records, around damage. Knows the header of records, not what they say. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_unpack.h"

/** One record with what belongs to it but lies outside its size. */
struct perf_item {
	const uint8_t *data;
	uint64_t file_offset; /* of the record, or of the COMPRESSED one that holds it; from the
				 start of data->mapping */
	uint32_t type;
	uint16_t misc, size;
	struct bytes payload;    /* AUXTRACE: trace; TRACING_DATA: formats; otherwise empty */
	uint64_t payload_offset; /* as file_offset */
};

/** Zero-initialise, then perf_walk_init(). */
struct perf_walk {
	const struct perf_data *data;
	struct arena *arena;    /* for what compressed records hold */
	struct bytes all;       /* the file and, behind it, the others of its directory */
	uint64_t position, end; /* in `all`: the next record, and the end of the present file */
	size_t next_part;       /* in data->parts */
	size_t next_index;      /* in data->aux_index */
	uint64_t ahead;         /* the kernel was asked to read up to here */
	uint64_t ahead_step;    /* and by so many bytes further the last time */
	size_t index_ahead;     /* in data->aux_index: and for what is before this one */
	uint64_t group_start;   /* of the records in a row that the walk is in */
	uint64_t group_size;    /* bytes that a group may have, by those so far */
	struct perf_unpack unpack;
	struct bytes inner; /* unpacked records not yet handed out */
	uint64_t inner_offset;
	bool truncated;
	uint64_t bad_offset, skipped_bytes;
	const char *bad_reason; /* the first one */
};

/** Start at the first record. `data` needs its file, data_offset, data_size and aux_index. */
void perf_walk_init(struct perf_walk *walk, const struct perf_data *data, struct arena *arena);

/**
 * The next record. Behind damage the walk goes on where several records in a row make sense, or at
 * the next AUXTRACE record that the file's index names, and ends if there is neither.
 * Returns 0, -PTVM_END or -PTVM_NO_MEMORY.
 */
int perf_walk_next(struct perf_walk *walk, struct perf_item *ret);

/** Release what unpacking took (not the arena). */
void perf_walk_deinit(struct perf_walk *walk);
