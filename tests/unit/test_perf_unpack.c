#include "decode/perf/perf_unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "decode/base/error.h"
#include "tests/sim_random.h"

enum { ROOM = 1 << 20 };

/* What a recorder and a reader of its compressed records have. */
struct bench {
	struct perf_unpack unpack;
	struct arena arena;
	ZSTD_CCtx *stream;
	uint8_t packed[ROOM];
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->stream = ZSTD_createCCtx();
	assert_non_null(bench->stream);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_unpack_deinit(&bench->unpack);
	arena_free(&bench->arena);
	(void)ZSTD_freeCCtx(bench->stream);
	free(bench);
	return 0;
}

/* The next piece of the stream, as perf makes one of what a ring has. */
static struct bytes pack(struct bench *bench, const void *bytes, size_t size, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { bytes, size, 0 };
	ZSTD_outBuffer out = { bench->packed, ROOM, 0 };

	assert_int_equal(ZSTD_compressStream2(bench->stream, &out, &in, end), 0);
	return (struct bytes){ bench->packed, out.pos };
}

/* A record of `size` bytes, each `fill` but for the header; returns its end. */
static uint8_t *make_record(uint8_t *at, uint16_t size, uint8_t fill)
{
	memset(at, 0, 8);
	at[0] = 3;
	memcpy(at + 6, &size, 2);
	if (size > 8)
		memset(at + 8, fill, size - (size_t)8);
	return at + size;
}

static struct bytes join(struct bench *bench, struct bytes first, struct bytes more)
{
	uint8_t *all;

	if (!first.size || !more.size)
		return first.size ? first : more;
	all = arena_alloc(&bench->arena, first.size + more.size);
	assert_non_null(all);
	memcpy(all, first.data, first.size);
	memcpy(all + first.size, more.data, more.size);
	return (struct bytes){ all, first.size + more.size };
}

/* All that comes of one piece; where it comes in several parts, they are put together. */
static int feed_packed(struct bench *bench, struct bytes packed, struct bytes *ret)
{
	struct bytes part;
	int r;

	*ret = (struct bytes){ NULL, 0 };
	perf_unpack_feed(&bench->unpack, packed);
	while (!(r = perf_unpack_next(&bench->unpack, &bench->arena, &part)) ||
	       r == -PTVM_BAD_INPUT) {
		*ret = join(bench, *ret, part);
		if (r)
			return r;
	}
	return r == -PTVM_END ? 0 : r;
}

static int feed(struct bench *bench, const void *bytes, size_t size, struct bytes *ret)
{
	return feed_packed(bench, pack(bench, bytes, size, ZSTD_e_flush), ret);
}

static void whole_records_are_handed_out(void **state)
{
	struct bench *bench = *state;
	uint8_t records[32], *end = make_record(make_record(records, 8, 0), 24, 7);
	struct bytes got;

	assert_int_equal(feed(bench, records, (size_t)(end - records), &got), 0);
	assert_int_equal(got.size, 32);
	assert_memory_equal(got.data, records, 32);
	assert_int_equal(feed(bench, records, 8, &got), 0);
	assert_int_equal(got.size, 8);
}

/* Cut anywhere, the first part waits for the second one. */
static void a_record_may_begin_in_one_piece_and_end_in_the_next(void **state)
{
	struct bench *bench = *state;
	uint8_t records[40], *end = make_record(make_record(records, 16, 1), 24, 2);
	const size_t size = (size_t)(end - records);

	for (size_t cut = 0; cut <= size; cut++) {
		const size_t whole = cut < 16 ? 0 : cut < 40 ? 16 : 40;
		struct bytes got;

		assert_int_equal(feed(bench, records, cut, &got), 0);
		assert_int_equal(got.size, whole);
		if (whole)
			assert_memory_equal(got.data, records, whole);
		assert_int_equal(feed(bench, records + cut, size - cut, &got), 0);
		assert_int_equal(got.size, size - whole);
		if (whole < size)
			assert_memory_equal(got.data, records + whole, size - whole);
	}
}

static void what_was_handed_out_stays(void **state)
{
	struct bench *bench = *state;
	uint8_t first[16], second[16];
	struct bytes got, later;

	(void)make_record(first, 16, 1);
	(void)make_record(second, 16, 2);
	assert_int_equal(feed(bench, first, 16, &got), 0);
	assert_int_equal(feed(bench, second, 16, &later), 0);
	assert_memory_equal(got.data, first, 16);
	assert_memory_equal(later.data, second, 16);
}

/* More than fits into what is there at once. */
static void large_pieces_come_whole(void **state)
{
	enum { COUNT = 100, SIZE = 60000 };
	struct bench *bench = *state;
	uint8_t *records = malloc((size_t)COUNT * SIZE), *end = records;
	struct bytes got;

	assert_non_null(records);
	for (unsigned i = 0; i < COUNT; i++)
		end = make_record(end, SIZE, (uint8_t)i);
	assert_int_equal(feed(bench, records, (size_t)(end - records), &got), 0);
	assert_int_equal(got.size, end - records);
	assert_memory_equal(got.data, records, got.size);
	free(records);
}

/* zstd may have taken all bytes while there was no room for what they are: one record more than
 * what fits is made of the last 40. */
static void what_zstd_keeps_is_taken_too(void **state)
{
	enum { WHOLE = 65528, LAST = 40, ROOM_AT_FIRST = 256 << 10 };
	struct bench *bench = *state;
	uint8_t *records = calloc(1, 5 * WHOLE + LAST), *end = records;
	struct bytes got;

	assert_non_null(records);
	for (unsigned i = 0; i < 4; i++)
		end = make_record(end, WHOLE, 0);
	end = make_record(end, LAST, 0);
	(void)make_record(end, WHOLE, 0);
	assert_int_equal(feed(bench, records, LAST, &got), 0);
	assert_int_equal(got.size, 0);
	assert_int_equal(feed(bench, records + LAST, ROOM_AT_FIRST, &got), 0);
	assert_int_equal(got.size, 4 * WHOLE + LAST);
	free(records);
}

static void one_stream_may_have_several_frames(void **state)
{
	struct bench *bench = *state;
	uint8_t record[24];
	struct bytes got, packed;

	(void)make_record(record, 24, 5);
	packed = pack(bench, record, 20, ZSTD_e_end);
	assert_int_equal(feed_packed(bench, packed, &got), 0);
	assert_int_equal(got.size, 0);
	packed = pack(bench, record + 20, 4, ZSTD_e_end);
	assert_int_equal(feed_packed(bench, packed, &got), 0);
	assert_memory_equal(got.data, record, 24);
}

/* Each is listed with some fifty bytes: a file of a megabyte could ask for gigabytes. */
static void there_are_no_more_records_than_real_ones_would_be(void **state)
{
	enum { EACH = 1 << 20, TIMES = 6, MOST = (4 << 20) + 100000 };
	struct bench *bench = *state;
	uint8_t *records = malloc((size_t)EACH * 8), *end = records;
	size_t count = 0;
	struct bytes got;
	int r = 0;

	assert_non_null(records);
	for (unsigned i = 0; i < EACH; i++)
		end = make_record(end, 8, 0);
	for (unsigned i = 0; i < TIMES && !r; i++) {
		r = feed(bench, records, (size_t)EACH * 8, &got);
		count += got.size / 8;
	}
	assert_int_equal(r, -PTVM_BAD_INPUT);
	assert_in_range(count, 4 * EACH, MOST);
	free(records);
}

static void nothing_gives_nothing(void **state)
{
	struct bench *bench = *state;
	struct bytes got = { bench->packed, 9 };

	assert_int_equal(feed_packed(bench, (struct bytes){ NULL, 0 }, &got), 0);
	assert_int_equal(got.size, 0);
	assert_null(got.data);
}

static void after_damage_nothing_more_comes(void **state)
{
	struct bench *bench = *state;
	uint8_t record[16];
	struct bytes got;

	(void)make_record(record, 16, 1);
	assert_int_equal(feed(bench, record, 16, &got), 0);
	assert_int_equal(
		feed_packed(bench, (struct bytes){ (const uint8_t *)"no zstd at all!!", 16 }, &got),
		-PTVM_BAD_INPUT);
	assert_int_equal(got.size, 0);
	got.data = record;
	assert_int_equal(feed(bench, record, 16, &got), -PTVM_BAD_INPUT);
	assert_int_equal(got.size, 0);
	assert_null(got.data);
}

/* zstd tells nothing of what it unpacked in the step that found the damage. */
static void what_came_before_damage_is_handed_out(void **state)
{
	enum { COUNT = 20, SIZE = 60000 };
	struct bench *bench = *state;
	uint8_t *records = malloc((size_t)COUNT * SIZE), *end = records;
	struct bytes got, packed;
	size_t size;

	assert_non_null(records);
	for (unsigned i = 0; i < COUNT; i++)
		end = make_record(end, SIZE, (uint8_t)i);
	size = pack(bench, records, (size_t)(end - records), ZSTD_e_flush).size;
	memset(bench->packed + size, 0xff, 16);
	packed = (struct bytes){ bench->packed, size + 16 };
	assert_int_equal(feed_packed(bench, packed, &got), -PTVM_BAD_INPUT);
	assert_true(got.size && got.size % SIZE == 0);
	assert_memory_equal(got.data, records, got.size);
	free(records);
}

/* A size below that of the header would be taken again and again. */
static void an_impossible_record_is_damage(void **state)
{
	for (uint16_t size = 0; size < 8; size++) {
		struct bytes got;
		uint8_t records[32];
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		(void)make_record(make_record(records, 16, 1), 8, 1);
		memcpy(records + 16 + 6, &size, 2);
		memset(records + 24, 0, 8);
		assert_int_equal(feed(bench, records, 32, &got), -PTVM_BAD_INPUT);
		assert_int_equal(got.size, 16);
		(void)make_record(records, 16, 1);
		assert_int_equal(feed(bench, records, 16, &got), -PTVM_BAD_INPUT);
		assert_int_equal(got.size, 0);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Fill two MiB with records of which `random` bytes each cannot be packed, and feed them as often
 * as it takes for so many MiB, unless they are refused. Returns how many were fed. */
static unsigned feed_mib(struct bench *bench, size_t random, unsigned mib)
{
	enum { RECORD = 65528, STEP = 2 };
	struct sim_random source = { 1 };
	uint8_t *records = calloc(1, STEP * ROOM);
	unsigned given = 0;
	int r = 0;

	assert_non_null(records);
	for (; !r && given < mib; given += STEP) {
		uint8_t *end = records;
		struct bytes got;

		for (unsigned i = 0; i < STEP * ROOM / RECORD; i++) {
			for (size_t k = 0; k < random; k++)
				end[8 + k] = (uint8_t)sim_random_below(&source, 256);
			memcpy(end, "\3\0\0\0\0\0\xf8\xff", 8);
			end += RECORD;
		}
		r = feed(bench, records, (size_t)(end - records), &got);
		arena_free(&bench->arena);
	}
	free(records);
	assert_true(!r || r == -PTVM_BAD_INPUT);
	return r ? given - STEP : mib;
}

/* Zeroes pack some thousand times: a small file that claims much is refused before it is all in
 * memory. */
static void more_than_any_recorder_packs_is_refused(void **state)
{
	assert_in_range(feed_mib(*state, 0, 80), 62, 66);
}

static void what_packs_a_hundred_times_is_taken(void **state)
{
	assert_int_equal(feed_mib(*state, 600, 70), 70);
}

static void all_can_be_released_at_any_time(void **state)
{
	struct perf_unpack unpack = { 0 };
	struct bench *bench = *state;
	uint8_t record[24];
	struct bytes got;

	perf_unpack_deinit(&unpack);
	(void)make_record(record, 24, 1);
	assert_int_equal(feed(bench, record, 20, &got), 0);
	perf_unpack_deinit(&bench->unpack);
	assert_null(bench->unpack.stream);
	assert_int_equal(bench->unpack.size, 0);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(whole_records_are_handed_out),
		WITH_FIXTURE(a_record_may_begin_in_one_piece_and_end_in_the_next),
		WITH_FIXTURE(what_was_handed_out_stays),
		WITH_FIXTURE(large_pieces_come_whole),
		WITH_FIXTURE(what_zstd_keeps_is_taken_too),
		WITH_FIXTURE(one_stream_may_have_several_frames),
		WITH_FIXTURE(there_are_no_more_records_than_real_ones_would_be),
		WITH_FIXTURE(nothing_gives_nothing),
		WITH_FIXTURE(after_damage_nothing_more_comes),
		WITH_FIXTURE(what_came_before_damage_is_handed_out),
		cmocka_unit_test(an_impossible_record_is_damage),
		WITH_FIXTURE(more_than_any_recorder_packs_is_refused),
		WITH_FIXTURE(what_packs_a_hundred_times_is_taken),
		WITH_FIXTURE(all_can_be_released_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
