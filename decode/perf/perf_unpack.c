#include "decode/perf/perf_unpack.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "decode/base/error.h"

/* Records become 3 to 30 times smaller when they are compressed, and at the least each has a time
 * of its own, which takes some bytes. Data that unpack to far more than that, beyond the first
 * bytes or records, were made to exhaust memory. */
enum { FREE_BYTES = 64 << 20, MOST_RATIO = 200, FREE_RECORDS = 4 << 20 };

/* What is unpacked before records are handed out is some times the largest record, of which a part
 * may be kept. Of a step that finds damage nothing is had: it is as small as a block of zstd's. */
enum { ROOM = 512 << 10, STEP = 128 << 10 };

static bool is_too_much(const struct perf_unpack *unpack)
{
	return unpack->total_out > FREE_BYTES &&
	       unpack->total_out - FREE_BYTES > unpack->total_in * MOST_RATIO;
}

/* Fill the room there is. */
static int unpack_some(struct perf_unpack *unpack)
{
	bool is_damaged = false;

	do {
		size_t room = ROOM - unpack->size;
		ZSTD_inBuffer in = { unpack->in.data, unpack->in.size, 0 };
		ZSTD_outBuffer out = { unpack->bytes + unpack->size, room < STEP ? room : STEP, 0 };

		is_damaged = ZSTD_isError(ZSTD_decompressStream(unpack->stream, &out, &in));
		unpack->in = bytes_slice(unpack->in, in.pos, unpack->in.size);
		unpack->size += out.pos;
		unpack->total_out += out.pos;
		unpack->has_more = out.pos == out.size;
	} while (!is_damaged && unpack->size < ROOM && (unpack->in.size || unpack->has_more));
	return is_damaged || is_too_much(unpack) ? -PTVM_BAD_INPUT : 0;
}

/* Bytes of whole records at the start. A header that cannot be, or more records than compressed
 * bytes, break the stream. */
static size_t whole_records(struct perf_unpack *unpack)
{
	size_t position = 0;

	while (unpack->size - position >= 8) {
		size_t size = (size_t)load_le(unpack->bytes + position + 6, 2);

		if (size >= 8 && size > unpack->size - position)
			break;
		if (size < 8 || unpack->total_records > FREE_RECORDS + unpack->total_in) {
			unpack->is_broken = true;
			break;
		}
		unpack->total_records++;
		position += size;
	}
	return position;
}

static int hand_out(struct perf_unpack *unpack, struct arena *arena, struct bytes *ret)
{
	size_t size = whole_records(unpack);

	if (!size)
		return 0;

	uint8_t *copy = arena_alloc(arena, size);

	if (!copy)
		return -PTVM_NO_MEMORY;
	memcpy(copy, unpack->bytes, size);
	memmove(unpack->bytes, unpack->bytes + size, unpack->size - size);
	unpack->size -= size;
	*ret = (struct bytes){ copy, size };
	return 0;
}

void perf_unpack_feed(struct perf_unpack *unpack, struct bytes compressed)
{
	unpack->in = compressed;
	unpack->total_in += compressed.size;
}

static int begin(struct perf_unpack *unpack)
{
	if (!unpack->stream)
		unpack->stream = ZSTD_createDCtx();
	if (!unpack->bytes)
		unpack->bytes = malloc(ROOM);
	return unpack->stream && unpack->bytes ? 0 : -PTVM_NO_MEMORY;
}

int perf_unpack_next(struct perf_unpack *unpack, struct arena *arena, struct bytes *ret)
{
	*ret = (struct bytes){ NULL, 0 };
	if (!unpack->in.size && !unpack->has_more)
		return -PTVM_END;
	if (unpack->is_broken) {
		unpack->in.size = 0;
		unpack->has_more = false;
		return -PTVM_BAD_INPUT;
	}
	if (begin(unpack) < 0)
		return -PTVM_NO_MEMORY;
	if (unpack_some(unpack) < 0)
		unpack->is_broken = true;
	if (hand_out(unpack, arena, ret) < 0)
		return -PTVM_NO_MEMORY;
	return unpack->is_broken ? -PTVM_BAD_INPUT : 0;
}

void perf_unpack_deinit(struct perf_unpack *unpack)
{
	(void)ZSTD_freeDCtx(unpack->stream);
	free(unpack->bytes);
	*unpack = (struct perf_unpack){ 0 };
}
