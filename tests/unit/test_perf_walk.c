#include "decode/perf/perf_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <zstd.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"

enum { START = 104, ROOM = 1 << 16 };

/* A file of records behind a header that nobody reads, and a walk over it. */
struct bench {
	struct perf_data data;
	struct arena arena;
	struct perf_walk walk;
	struct perf_item item;
	uint8_t bytes[ROOM];
	size_t size;
	uint8_t *exact; /* the same in memory of just its size */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->size = START;
	bench->data.data_offset = START;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_walk_deinit(&bench->walk);
	vec_free(&bench->data.aux_index);
	vec_free(&bench->data.parts);
	arena_free(&bench->arena);
	free(bench->exact);
	free(bench);
	return 0;
}

static void put(struct bench *bench, const void *bytes, size_t size)
{
	assert_true(bench->size + size <= ROOM);
	if (size)
		memcpy(bench->bytes + bench->size, bytes, size);
	bench->size += size;
}

/* Append a record that says to be of `says` bytes, of which `size` are there; returns its place. */
static size_t add_odd(struct bench *bench, uint32_t type, uint16_t says, const void *body,
		      size_t size)
{
	const size_t at = bench->size;
	const uint16_t misc = 7;

	put(bench, &type, 4);
	put(bench, &misc, 2);
	put(bench, &says, 2);
	put(bench, body, size);
	return at;
}

static size_t add(struct bench *bench, uint32_t type, const void *body, size_t size)
{
	return add_odd(bench, type, (uint16_t)(8 + size), body, size);
}

/* Some record, of which the body is a number. */
static size_t add_number(struct bench *bench, uint64_t number)
{
	return add(bench, PERF_LOST_SAMPLES, &number, 8);
}

/* An AUXTRACE that says to have `says` bytes of trace, of which `size` are there. */
static size_t add_trace(struct bench *bench, uint64_t says, size_t size)
{
	const uint64_t body[5] = { says };
	const size_t at = add(bench, PERF_AUXTRACE, body, sizeof(body));
	uint8_t trace[256];

	memset(trace, 0x11, sizeof(trace));
	put(bench, trace, size);
	return at;
}

static void add_index(struct bench *bench, uint64_t offset)
{
	assert_true(vec_push(&bench->data.aux_index, offset));
}

static void start(struct bench *bench)
{
	perf_walk_deinit(&bench->walk);
	free(bench->exact);
	bench->exact = malloc(bench->size);
	assert_non_null(bench->exact);
	memcpy(bench->exact, bench->bytes, bench->size);
	bench->data.file = (struct bytes){ bench->exact, bench->size };
	perf_walk_init(&bench->walk, &bench->data, &bench->arena);
}

static void start_whole(struct bench *bench)
{
	bench->data.data_size = bench->size - START;
	start(bench);
}

static const struct perf_item *next(struct bench *bench)
{
	assert_int_equal(perf_walk_next(&bench->walk, &bench->item), 0);
	return &bench->item;
}

static void assert_number(struct bench *bench, uint64_t number)
{
	assert_int_equal(next(bench)->type, PERF_LOST_SAMPLES);
	assert_int_equal(load_le(bench->item.data + 8, 8), number);
}

static void assert_end(struct bench *bench)
{
	assert_int_equal(perf_walk_next(&bench->walk, &bench->item), -PTVM_END);
	assert_int_equal(perf_walk_next(&bench->walk, &bench->item), -PTVM_END);
}

static void assert_whole(const struct bench *bench)
{
	assert_null(bench->walk.bad_reason);
	assert_false(bench->walk.truncated);
	assert_int_equal(bench->walk.skipped_bytes, 0);
}

static void assert_bad(const struct bench *bench, uint64_t offset, const char *word)
{
	assert_non_null(bench->walk.bad_reason);
	assert_non_null(strstr(bench->walk.bad_reason, word));
	assert_int_equal(bench->walk.bad_offset, offset);
}

static void records_come_as_they_lie(void **state)
{
	struct bench *bench = *state;
	const size_t first = add_number(bench, 1),
		     second = add(bench, PERF_FINISHED_ROUND, NULL, 0);
	const struct perf_item *item;

	put(bench, "features", 8);
	bench->data.data_size = 24;
	start(bench);
	item = next(bench);
	assert_int_equal(item->type, PERF_LOST_SAMPLES);
	assert_int_equal(item->misc, 7);
	assert_int_equal(item->size, 16);
	assert_int_equal(item->file_offset, first);
	assert_ptr_equal(item->data, bench->exact + first);
	assert_int_equal(item->payload.size, 0);
	item = next(bench);
	assert_int_equal(item->type, PERF_FINISHED_ROUND);
	assert_int_equal(item->file_offset, second);
	assert_end(bench);
	assert_whole(bench);
}

static void trace_belongs_to_its_record(void **state)
{
	struct bench *bench = *state;
	const size_t at = add_trace(bench, 24, 24);

	add_number(bench, 2);
	start_whole(bench);
	assert_int_equal(next(bench)->type, PERF_AUXTRACE);
	assert_int_equal(bench->item.payload.size, 24);
	assert_ptr_equal(bench->item.payload.data, bench->exact + at + 48);
	assert_int_equal(bench->item.payload_offset, at + 48);
	assert_number(bench, 2);
	assert_end(bench);
	assert_whole(bench);
}

/* A group of records before each piece of trace, by the number of its records. */
static void add_groups(struct bench *bench, size_t groups, size_t records)
{
	for (size_t i = 0; i < groups; i++) {
		for (size_t k = 0; k < records; k++)
			add_number(bench, k);
		add_index(bench, bench->size);
		add_trace(bench, 8, 8);
	}
}

/* Pass some pieces of trace; returns how long groups are thought to be. */
static uint64_t pass_groups(struct bench *bench, size_t groups)
{
	while (groups)
		groups -= next(bench)->type == PERF_AUXTRACE;
	return bench->walk.group_size;
}

static void groups_that_the_index_names_are_read_ahead(void **state)
{
	enum { AHEAD = 256, GROUPS = AHEAD + AHEAD / 2 };
	struct bench *bench = *state;

	add_groups(bench, GROUPS, 1);
	start_whole(bench);
	assert_int_equal(bench->walk.index_ahead, AHEAD);
	pass_groups(bench, AHEAD / 4);
	assert_int_equal(bench->walk.index_ahead, AHEAD);
	pass_groups(bench, AHEAD / 4);
	assert_in_range(bench->walk.index_ahead, GROUPS - 1, GROUPS);
	pass_groups(bench, GROUPS - AHEAD / 2);
	assert_int_equal(bench->walk.index_ahead, GROUPS);
	assert_end(bench);
	assert_whole(bench);
}

/* What is read ahead is soon as long as groups are, and not less than the last one. */
static void groups_tell_how_long_the_next_ones_are(void **state)
{
	enum { FEW = 100, MANY = 1000, NUMBER = 16 };
	struct bench *bench = *state;

	add_groups(bench, FEW, 1);
	add_groups(bench, 1, MANY);
	add_groups(bench, 2, 1);
	start_whole(bench);
	assert_in_range(pass_groups(bench, FEW), NUMBER, 2 * NUMBER);
	assert_int_equal(pass_groups(bench, 1), MANY * NUMBER);
	assert_in_range(pass_groups(bench, 2), MANY * NUMBER / 2, MANY * NUMBER);
	assert_end(bench);
	assert_whole(bench);
}

/* Their size is not a multiple of 8: perf pads them. */
static void formats_of_tracepoints_belong_to_their_record(void **state)
{
	const uint64_t size = 13, size_and_pad = size | (uint64_t)0xeeeeeeee << 32;
	struct bench *bench = *state;

	add(bench, PERF_TRACING_DATA, &size_and_pad, 8);
	put(bench, "formats.......\0", 16);
	add_number(bench, 3);
	add(bench, PERF_TRACING_DATA, NULL, 0); /* too short to say */
	start_whole(bench);
	assert_int_equal(next(bench)->payload.size, 16);
	assert_memory_equal(bench->item.payload.data, "formats", 7);
	assert_number(bench, 3);
	assert_int_equal(next(bench)->payload.size, 0);
	assert_end(bench);
	assert_whole(bench);
}

/* The features in a pipe, build ids, and compressed bytes. */
static void some_records_have_any_size(void **state)
{
	struct bench *bench = *state;

	add(bench, PERF_HEADER_FEATURE, "feature", 5);
	add_number(bench, 4);
	add(bench, PERF_HEADER_BUILD_ID, "build id", 4);
	add_number(bench, 5);
	start_whole(bench);
	assert_int_equal(next(bench)->size, 13);
	assert_number(bench, 4);
	assert_int_equal(next(bench)->size, 12);
	assert_number(bench, 5);
	assert_end(bench);
	assert_whole(bench);
}

static void a_pipe_ends_where_it_ends(void **state)
{
	struct bench *bench = *state;

	bench->data.is_pipe = true;
	add_number(bench, 5);
	start(bench);
	assert_number(bench, 5);
	assert_end(bench);
	assert_whole(bench);
}

static void an_unfinished_file_is_read_to_its_end(void **state)
{
	struct bench *bench = *state;

	add_number(bench, 6);
	start(bench); /* the size of its data is 0 */
	assert_number(bench, 6);
	assert_end(bench);
	assert_true(bench->walk.truncated);
	assert_null(bench->walk.bad_reason);
}

static void a_file_may_be_shorter_than_its_header_says(void **state)
{
	struct bench *bench = *state;

	add_number(bench, 7);
	bench->data.data_size = UINT64_MAX;
	start(bench);
	assert_true(bench->walk.truncated);
	assert_number(bench, 7);
	assert_end(bench);
}

static void a_record_cut_off_at_the_end_is_told(void **state)
{
	struct bench *bench = *state;
	size_t last;

	add_number(bench, 8);
	last = add_number(bench, 9);
	for (bench->size = last + 1; bench->size < last + 16; bench->size++) {
		start_whole(bench);
		assert_number(bench, 8);
		assert_end(bench);
		assert_true(bench->walk.truncated);
		assert_bad(bench, last,
			   bench->size < last + 8 ? "header cut off" : "longer than the data");
		assert_int_equal(bench->walk.skipped_bytes, bench->size - last);
	}
}

static void what_cannot_be_a_record_is_damage(void **state)
{
	static const struct {
		uint32_t type;
		uint16_t size;
		const char *word;
		bool is_cut_off;
	} cases[] = { { PERF_COMM, 0, "smaller than its header" },
		      { PERF_COMM, 7, "smaller than its header" },
		      { 0, 16, "no such type" },
		      { 256, 16, "no such type" },
		      { UINT32_MAX, 16, "no such type" },
		      { PERF_COMM, 12, "multiple of 8" },
		      { PERF_AUXTRACE, 40, "AUXTRACE" },
		      { 256, 64, "no such type" },
		      { 0, 64, "no such type" },
		      { PERF_COMM, 64, "longer than the data", true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench;
		size_t at;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		add_number(bench, 10);
		at = add_odd(bench, cases[i].type, cases[i].size, "\0\0\0\0\0\0\0", 8);
		put(bench, bench->bytes, 32); /* zeroes */
		start_whole(bench);
		assert_number(bench, 10);
		assert_end(bench);
		assert_bad(bench, at, cases[i].word);
		assert_int_equal(bench->walk.truncated, cases[i].is_cut_off);
		assert_int_equal(bench->walk.skipped_bytes, 48);
		assert_int_equal(tear_down(state), 0);
	}
}

static void types_of_tomorrow_are_records(void **state)
{
	struct bench *bench = *state;

	add(bench, 255, NULL, 0);
	add_number(bench, 11);
	start_whole(bench);
	assert_int_equal(next(bench)->type, 255);
	assert_number(bench, 11);
	assert_end(bench);
	assert_whole(bench);
}

/* Four in a row are no chance, three may be. */
static void behind_damage_four_records_in_a_row_are_found(void **state)
{
	for (uint64_t count = 3; count <= 6; count++) {
		struct bench *bench;
		size_t bad;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		add_number(bench, 0);
		bad = bench->size;
		put(bench, "\377\377\377\377\377\377\377\377\377\377\377\377\377", 13);
		for (uint64_t i = 1; i <= count; i++)
			add_number(bench, i);
		start_whole(bench);
		assert_number(bench, 0);
		for (uint64_t i = 1; count >= 4 && i <= count; i++)
			assert_number(bench, i);
		assert_end(bench);
		assert_bad(bench, bad, "no such type");
		assert_int_equal(bench->walk.skipped_bytes, count >= 4 ? 13 : bench->size - bad);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Trace between records is stepped over, not taken for records. */
static void a_row_may_have_trace_in_it(void **state)
{
	struct bench *bench = *state;

	put(bench, "\377\377\377\377\377\377\377\377", 8);
	for (unsigned i = 0; i < 4; i++)
		add_trace(bench, 16, 16);
	start_whole(bench);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(next(bench)->payload.size, 16);
	assert_end(bench);
	assert_int_equal(bench->walk.skipped_bytes, 8);
}

/* All behind it would be its trace. */
static void a_record_of_impossible_trace_begins_no_row(void **state)
{
	static const uint64_t sizes[] = { 8 + 3 * 16 + 1, UINT64_MAX - 100, UINT64_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		put(bench, "\377\377\377\377\377\377\377\377", 8);
		add_trace(bench, sizes[i], 8);
		for (uint64_t number = 1; number <= 3; number++)
			add_number(bench, number);
		start_whole(bench);
		assert_end(bench);
		assert_int_equal(bench->walk.skipped_bytes, bench->size - START);
		assert_int_equal(tear_down(state), 0);
	}
}

/* --repair would take it away, and the other three with it. */
static void a_record_without_its_trace_ends_no_row(void **state)
{
	for (size_t size = 0; size <= 8; size++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		put(bench, "\377\377\377\377\377\377\377\377", 8);
		for (uint64_t number = 1; number <= 3; number++)
			add_number(bench, number);
		add_trace(bench, 16, size);
		start(bench);
		if (size == 8)
			assert_number(bench, 1);
		else
			assert_end(bench);
		assert_int_equal(tear_down(state), 0);
	}
}

static void behind_damage_the_index_tells_where_trace_is(void **state)
{
	struct bench *bench = *state;
	const size_t before = add_trace(bench, 8, 8);
	size_t nothing, too_short, at;

	nothing = bench->size;
	put(bench, "\377\377\377\377\377\377\377\377", 8);
	too_short = add_odd(bench, PERF_AUXTRACE, 40, NULL, 0);
	at = add_trace(bench, 8, 8);
	add_index(bench, before);
	add_index(bench, nothing);
	add_index(bench, nothing + 4);
	add_index(bench, too_short);
	add_index(bench, at);
	add_index(bench, bench->size + 100);
	start_whole(bench);
	assert_int_equal(next(bench)->file_offset, before);
	assert_int_equal(next(bench)->file_offset, at);
	assert_int_equal(bench->item.payload.size, 8);
	assert_end(bench);
	assert_int_equal(bench->walk.skipped_bytes, 16);
}

/* A large file without any record must not be searched for ever: 64 MiB are. */
static void far_behind_damage_nothing_is_looked_for(void **state)
{
	enum { FAR = 64 << 20, ROW = 4, LENGTH = START + FAR + 16 * ROW };
	struct bench *bench = *state;
	uint8_t *bytes = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(bytes, MAP_FAILED);
	for (uint64_t i = 1; i <= ROW; i++)
		add_number(bench, i);
	for (size_t less = 0; less < 2; less++) {
		const size_t at = START + FAR - less;

		memset(bytes + START + FAR - 1, 0, 16 * ROW + 1);
		memcpy(bytes + at, bench->bytes + START, 16 * ROW);
		bench->data.file = (struct bytes){ bytes, LENGTH };
		bench->data.data_size = LENGTH - START;
		perf_walk_init(&bench->walk, &bench->data, &bench->arena);
		for (uint64_t i = 1; less && i <= ROW; i++)
			assert_number(bench, i);
		assert_end(bench);
	}
	assert_int_equal(munmap(bytes, LENGTH), 0);
}

static void trace_ends_before_the_next_that_the_index_has(void **state)
{
	struct bench *bench = *state;
	const size_t first = add_trace(bench, UINT64_MAX, 8), second = add_trace(bench, 8, 8);

	add_index(bench, first);
	add_index(bench, second);
	start_whole(bench);
	assert_int_equal(next(bench)->payload.size, 8);
	assert_bad(bench, first, "longer");
	assert_false(bench->walk.truncated);
	assert_int_equal(next(bench)->file_offset, second);
	assert_int_equal(bench->item.payload.size, 8);
	assert_end(bench);
}

static void trace_ends_with_the_data(void **state)
{
	struct bench *bench = *state;

	add_trace(bench, 33, 32);
	start_whole(bench);
	assert_int_equal(next(bench)->payload.size, 32);
	assert_true(bench->walk.truncated);
	assert_bad(bench, START, "longer");
	assert_end(bench);
}

/* Append a record with packed bytes of the stream. */
static size_t add_packed(struct bench *bench, ZSTD_CCtx *stream, uint32_t type, const void *bytes,
			 size_t size)
{
	uint8_t packed[512];
	ZSTD_inBuffer in = { bytes, size, 0 };
	ZSTD_outBuffer out = { packed + 8, sizeof(packed) - 8, 0 };
	uint64_t length;

	assert_int_equal(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush), 0);
	if (type == PERF_COMPRESSED)
		return add(bench, type, packed + 8, out.pos);
	length = out.pos;
	memcpy(packed, &length, 8);
	memset(packed + 8 + length, 0xff, 8);
	return add(bench, type, packed, 8 + ((size_t)length + 7) / 8 * 8);
}

/* Three numbers as records, to be packed. */
static void make_inner(uint8_t inner[48])
{
	const uint32_t type = PERF_LOST_SAMPLES;
	const uint16_t size = 16;

	memset(inner, 0, 48);
	for (uint8_t i = 0; i < 3; i++) {
		memcpy(inner + 16 * i, &type, 4);
		memcpy(inner + 16 * i + 6, &size, 2);
		inner[16 * i + 8] = i + 1;
	}
}

static void compressed_records_are_unpacked_behind_their_own(void **state)
{
	static const uint32_t types[] = { PERF_COMPRESSED, PERF_COMPRESSED2 };
	uint8_t inner[48];

	make_inner(inner);
	for (size_t i = 0; i < 2; i++) {
		ZSTD_CCtx *stream = ZSTD_createCCtx();
		struct bench *bench;
		size_t first, second;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		first = add_packed(bench, stream, types[i], inner, 24);
		second = add_packed(bench, stream, types[i], inner + 24, 24);
		add_number(bench, 4);
		start_whole(bench);
		assert_int_equal(next(bench)->type, types[i]);
		assert_number(bench, 1);
		assert_int_equal(bench->item.file_offset, first);
		assert_int_equal(next(bench)->type, types[i]);
		assert_number(bench, 2);
		assert_int_equal(bench->item.file_offset, second);
		assert_number(bench, 3);
		assert_number(bench, 4);
		assert_end(bench);
		assert_whole(bench);
		(void)ZSTD_freeCCtx(stream);
		assert_int_equal(tear_down(state), 0);
	}
}

static void damage_in_compressed_records_is_told(void **state)
{
	struct bench *bench = *state;
	size_t bad;

	add_number(bench, 1);
	bad = add(bench, PERF_COMPRESSED, "no zstd!", 8);
	add_number(bench, 2);
	start_whole(bench);
	assert_number(bench, 1);
	assert_int_equal(next(bench)->type, PERF_COMPRESSED);
	assert_number(bench, 2);
	assert_end(bench);
	assert_bad(bench, bad, "compressed");
}

/* Trace is never compressed: its bytes would not be there. */
static void impossible_records_in_compressed_ones_end_these(void **state)
{
	static const uint32_t types[] = { PERF_AUXTRACE, 0, 256 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ZSTD_CCtx *stream = ZSTD_createCCtx();
		struct bench *bench;
		uint8_t inner[48];
		size_t bad;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		make_inner(inner);
		memcpy(inner + 16, &types[i], 4);
		bad = add_packed(bench, stream, PERF_COMPRESSED, inner, 48);
		add_packed(bench, stream, PERF_COMPRESSED, inner, 16);
		add_number(bench, 9);
		start_whole(bench);
		assert_int_equal(next(bench)->type, PERF_COMPRESSED);
		assert_number(bench, 1);
		assert_int_equal(next(bench)->type, PERF_COMPRESSED);
		assert_number(bench, 9);
		assert_end(bench);
		assert_bad(bench, bad, "impossible record");
		(void)ZSTD_freeCCtx(stream);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Each is a stream of compressed records of its own. */
static void the_files_of_threads_follow(void **state)
{
	ZSTD_CCtx *streams[] = { ZSTD_createCCtx(), ZSTD_createCCtx() };
	struct perf_part part = { .number = 1 };
	struct bench *bench = *state;
	uint8_t inner[48];

	make_inner(inner);
	add_packed(bench, streams[0], PERF_COMPRESSED, inner, 24);
	bench->data.data_size = bench->size - START;
	put(bench, "between", 8);
	part.offset = bench->size;
	add_packed(bench, streams[1], PERF_COMPRESSED, inner + 16, 32);
	part.size = bench->size - part.offset;
	assert_true(vec_push(&bench->data.parts, part));
	put(bench, "behind.", 8);
	start(bench);
	assert_int_equal(next(bench)->type, PERF_COMPRESSED);
	assert_number(bench, 1);
	assert_int_equal(next(bench)->type, PERF_COMPRESSED);
	assert_number(bench, 2);
	assert_number(bench, 3);
	assert_int_equal(bench->item.file_offset, part.offset);
	assert_end(bench);
	assert_whole(bench);
	for (size_t i = 0; i < 2; i++)
		(void)ZSTD_freeCCtx(streams[i]);
}

static void damage_in_one_file_leaves_the_next(void **state)
{
	struct perf_part part = { .number = 1 };
	struct bench *bench = *state;

	put(bench, "\377\377\377\377\377\377\377\377", 8);
	bench->data.data_size = 8;
	part.offset = bench->size;
	add_number(bench, 1);
	part.size = bench->size - part.offset;
	assert_true(vec_push(&bench->data.parts, part));
	start(bench);
	assert_number(bench, 1);
	assert_end(bench);
	assert_int_equal(bench->walk.skipped_bytes, 8);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(records_come_as_they_lie),
		WITH_FIXTURE(trace_belongs_to_its_record),
		WITH_FIXTURE(groups_that_the_index_names_are_read_ahead),
		WITH_FIXTURE(groups_tell_how_long_the_next_ones_are),
		WITH_FIXTURE(formats_of_tracepoints_belong_to_their_record),
		WITH_FIXTURE(some_records_have_any_size),
		WITH_FIXTURE(a_pipe_ends_where_it_ends),
		WITH_FIXTURE(an_unfinished_file_is_read_to_its_end),
		WITH_FIXTURE(a_file_may_be_shorter_than_its_header_says),
		WITH_FIXTURE(a_record_cut_off_at_the_end_is_told),
		cmocka_unit_test(what_cannot_be_a_record_is_damage),
		WITH_FIXTURE(types_of_tomorrow_are_records),
		cmocka_unit_test(behind_damage_four_records_in_a_row_are_found),
		WITH_FIXTURE(a_row_may_have_trace_in_it),
		cmocka_unit_test(a_record_of_impossible_trace_begins_no_row),
		cmocka_unit_test(a_record_without_its_trace_ends_no_row),
		WITH_FIXTURE(behind_damage_the_index_tells_where_trace_is),
		WITH_FIXTURE(far_behind_damage_nothing_is_looked_for),
		WITH_FIXTURE(trace_ends_before_the_next_that_the_index_has),
		WITH_FIXTURE(trace_ends_with_the_data),
		cmocka_unit_test(compressed_records_are_unpacked_behind_their_own),
		WITH_FIXTURE(damage_in_compressed_records_is_told),
		cmocka_unit_test(impossible_records_in_compressed_ones_end_these),
		WITH_FIXTURE(the_files_of_threads_follow),
		WITH_FIXTURE(damage_in_one_file_leaves_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
