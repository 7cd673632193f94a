/* The records of a recording one after the other, as they lie in its files: past AUX bytes, into
 * compressed data, around damage. Knows what a header is, and nothing of what records say. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/perf_data.h"
#include "decode/perf_unpack.h"

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
	uint64_t position, end; /* of the one that is read */
	size_t next_part;       /* in data->parts */
	size_t next_index;      /* in data->aux_index */
	uint64_t ahead;         /* the kernel reads up to here into memory */
	uint64_t ahead_step;    /* bytes by which that is moved on */
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
 * The next record. Where the file is damaged the walk goes on at the next AUXTRACE record that the
 * file's index names, and ends if there is none.
 * Returns 0, -PTVM_END or -PTVM_NO_MEMORY.
 */
int perf_walk_next(struct perf_walk *walk, struct perf_item *ret);

/** Release what unpacking took (not the arena). */
void perf_walk_deinit(struct perf_walk *walk);
