#include "decode/perf_unpack.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "decode/base/error.h"

/* Records become 3 to 30 times smaller when they are compressed, and at the least each has a time
 * of its own, which takes some bytes. Data that unpack to far more than that, beyond the first
 * bytes or records, were made to exhaust memory. */
enum { FREE_BYTES = 64 << 20, MOST_RATIO = 200, FREE_RECORDS = 4 << 20, STEP = 128 << 10 };

static int make_room(struct perf_unpack *unpack)
{
	if (unpack->room - unpack->size >= STEP)
		return 0;

	size_t room = (unpack->room + STEP) * 2;
	uint8_t *bytes = realloc(unpack->bytes, room);

	if (!bytes)
		return -PTVM_NO_MEMORY;
	unpack->bytes = bytes;
	unpack->room = room;
	return 0;
}

static bool is_too_much(const struct perf_unpack *unpack)
{
	return unpack->total_out > FREE_BYTES &&
	       unpack->total_out - FREE_BYTES > unpack->total_in * MOST_RATIO;
}

static int unpack_all(struct perf_unpack *unpack, struct bytes compressed)
{
	ZSTD_inBuffer in = { compressed.data, compressed.size, 0 };
	bool is_full;

	do {
		if (make_room(unpack) < 0)
			return -PTVM_NO_MEMORY;

		ZSTD_outBuffer out = { unpack->bytes, unpack->room, unpack->size };
		size_t r = ZSTD_decompressStream(unpack->stream, &out, &in);

		unpack->total_out += out.pos - unpack->size;
		unpack->size = out.pos;
		is_full = out.pos == out.size;
		if (ZSTD_isError(r) || is_too_much(unpack))
			return -PTVM_BAD_INPUT;
	} while (in.pos < in.size || is_full);
	return 0;
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

int perf_unpack_feed(struct perf_unpack *unpack, struct bytes compressed, struct arena *arena,
		     struct bytes *ret)
{
	int r;

	*ret = (struct bytes){ NULL, 0 };
	if (unpack->is_broken)
		return -PTVM_BAD_INPUT;
	if (!unpack->stream)
		unpack->stream = ZSTD_createDCtx();
	if (!unpack->stream)
		return -PTVM_NO_MEMORY;

	unpack->total_in += compressed.size;
	r = unpack_all(unpack, compressed);
	if (r == -PTVM_NO_MEMORY)
		return r;
	if (r < 0)
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
