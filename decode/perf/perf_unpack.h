/* zstd-compressed records -> plain ones. All compressed records of a file are one stream, and a
 * record may begin in one and end in the next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"
#include "decode/base/bytes.h"

struct ZSTD_DCtx_s;

/** Zero-initialise before use. */
struct perf_unpack {
	struct ZSTD_DCtx_s *stream;
	struct bytes in; /* not yet unpacked */
	bool has_more;   /* zstd may keep some of what it took */
	uint8_t *bytes;  /* unpacked, not yet handed out */
	size_t size;
	uint64_t total_in, total_out; /* bytes */
	uint64_t total_records;
	bool is_broken; /* the stream is damaged: nothing more will come of it */
};

/** Go on with one compressed record's bytes, which stay until all was had of them. */
void perf_unpack_feed(struct perf_unpack *unpack, struct bytes compressed);

/**
 * The next records that are whole, some hundred KB; the start of one more may be kept, also for the
 * compressed record that follows.
 *
 * @arena   takes the result
 * @ret     at least one record, or nothing
 *
 * Returns 0, -PTVM_END (nothing more of what was fed), -PTVM_BAD_INPUT (damaged, or more than any
 * recorder makes of so little; what could be had is in `ret` all the same) or -PTVM_NO_MEMORY.
 */
int perf_unpack_next(struct perf_unpack *unpack, struct arena *arena, struct bytes *ret);

/** Release everything; accepts zeroes. */
void perf_unpack_deinit(struct perf_unpack *unpack);
