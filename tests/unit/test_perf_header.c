#include "decode/perf/perf_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/perf/perf_feature.h"

enum { HEADER = 104, ATTRS = 24, DATA = 40, FEATURES = 72, ROOM = 2048 };

/* A file's first bytes: a header without attrs whose data are 8 bytes right behind it. */
struct bench {
	struct perf_data data;
	struct ptvm_error error;
	uint8_t file[ROOM];
	size_t size;
	uint8_t *exact; /* the same in memory of just its size */
};

static void store(struct bench *bench, size_t at, uint64_t value)
{
	assert_true(at + 8 <= ROOM);
	memcpy(bench->file + at, &value, 8);
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	memcpy(bench->file, "PERFILE2", 8);
	store(bench, 8, HEADER);
	store(bench, 16, 144);
	store(bench, DATA, HEADER);
	store(bench, DATA + 8, 8);
	bench->size = HEADER + 8;
	*state = bench;
	return 0;
}

static void drop(struct bench *bench)
{
	vec_free(&bench->data.events);
	vec_free(&bench->data.build_ids);
	vec_free(&bench->data.aux_index);
	arena_free(&bench->data.arena);
	free(bench->exact);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	drop(bench);
	free(bench);
	return 0;
}

static int read_header(struct bench *bench)
{
	drop(bench);
	bench->exact = malloc(bench->size);
	assert_non_null(bench->exact);
	memcpy(bench->exact, bench->file, bench->size);
	bench->data = (struct perf_data){ .file = { bench->exact, bench->size } };
	bench->error = (struct ptvm_error){ 0 };
	return perf_header_read(&bench->data, &bench->error);
}

/* Append an attr that is of `size` bytes and says to be of `says`, and its ids' place. */
static void add_attr(struct bench *bench, uint32_t type, uint32_t says, uint32_t size, uint64_t ids,
		     uint64_t ids_size)
{
	if (!load_le(bench->file + ATTRS, 8))
		store(bench, ATTRS, bench->size);
	store(bench, bench->size, type | (uint64_t)says << 32);
	store(bench, bench->size + size, ids);
	store(bench, bench->size + size + 8, ids_size);
	bench->size += size + 16;
	store(bench, ATTRS + 8, bench->size - load_le(bench->file + ATTRS, 8));
}

static void set_feature(struct bench *bench, unsigned feature)
{
	bench->file[FEATURES + feature / 8] |= (uint8_t)(1 << feature % 8);
}

static void a_magic_tells_what_a_file_is(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *word; /* of the message; NULL where it is a recording */
	} cases[] = {
		{ "PERFILE2\x68\0\0\0\0\0\0", 16, NULL },
		{ "PERFILE2\x10\0\0\0\0\0\0", 15, "too short" },
		{ "", 0, "too short" },
		{ "2ELIFREP\0\0\0\0\0\0\0", 16, "big-endian" },
		{ "PERFFILE\0\0\0\0\0\0\0", 16, "version 1" },
		{ "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 16, "--pt" },
		{ "PERFILE3\0\0\0\0\0\0\0", 16, "not a perf.data" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ptvm_error error = { 0 };
		int r = perf_header_check(
			(struct bytes){ (const uint8_t *)cases[i].bytes, cases[i].size },
			"some/file", &error);

		assert_int_equal(r, cases[i].word ? -PTVM_BAD_INPUT : 0);
		if (!cases[i].word)
			continue;
		assert_non_null(strstr(error.message, cases[i].word));
		assert_ptr_equal(strstr(error.message, "some/file: "), error.message);
	}
}

static void a_file_says_where_its_data_are(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.data_offset, HEADER);
	assert_int_equal(bench->data.data_size, 8);
	assert_false(bench->data.is_pipe);
	assert_int_equal(bench->data.bad_features, 0);
	assert_int_equal(bench->data.events.count, 0);
}

static void data_must_begin_behind_the_header_and_in_the_file(void **state)
{
	struct bench *bench = *state;

	store(bench, DATA, HEADER - 1);
	assert_int_equal(read_header(bench), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "outside"));
	store(bench, DATA, bench->size + 1);
	assert_int_equal(read_header(bench), -PTVM_BAD_INPUT);
	store(bench, DATA, UINT64_MAX);
	assert_int_equal(read_header(bench), -PTVM_BAD_INPUT);
	store(bench, DATA, bench->size);
	assert_int_equal(read_header(bench), 0);
}

static void a_header_cut_anywhere_is_refused(void **state)
{
	struct bench *bench = *state;

	for (bench->size = 1; bench->size < HEADER; bench->size++)
		assert_int_equal(read_header(bench), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "cut off"));
}

static void a_pipe_has_records_right_behind_its_short_header(void **state)
{
	struct bench *bench = *state;

	store(bench, 8, 16);
	bench->size = 16;
	assert_int_equal(read_header(bench), 0);
	assert_true(bench->data.is_pipe);
	assert_int_equal(bench->data.data_offset, 16);
	assert_int_equal(bench->data.data_size, 0);
}

/* Each by its own size, which need not be what the header says. */
static void attrs_of_mixed_sizes_are_read(void **state)
{
	static const uint32_t sizes[] = { 64, 144, 72, 136 };
	struct bench *bench = *state;

	for (uint32_t i = 0; i < 4; i++)
		add_attr(bench, i, sizes[i], sizes[i], 0, 0);
	add_attr(bench, 4, 0, 64, 0, 0); /* the oldest: it does not say its size */
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.events.count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(bench->data.events.items[i].type, i);
	assert_int_equal(bench->data.bad_features, 0);
}

static void ids_are_where_the_attr_says(void **state)
{
	struct bench *bench = *state;
	const size_t ids = bench->size;

	store(bench, ids, 11);
	store(bench, ids + 8, 12);
	bench->size += 16;
	add_attr(bench, 1, 64, 64, ids, 16);
	add_attr(bench, 2, 64, 64, ids + 8, 8);
	add_attr(bench, 3, 64, 64, UINT64_MAX, 8);
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.events.items[0].id_count, 2);
	assert_int_equal(bench->data.events.items[0].ids[1], 12);
	assert_int_equal(bench->data.events.items[1].ids[0], 12);
	assert_int_equal(bench->data.events.items[2].id_count, 0);
}

/* Then the header's size of all attrs is the best guess of where the next one is. */
static void an_attr_of_impossible_size_is_stepped_over(void **state)
{
	struct bench *bench = *state;

	add_attr(bench, 1, 128, 128, 0, 0);
	add_attr(bench, 2, 5, 128, 0, 0);
	add_attr(bench, 3, 128, 128, 0, 0);
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.events.count, 2);
	assert_int_equal(bench->data.events.items[1].type, 3);
	assert_int_equal(bench->data.bad_features, 1);
}

static void without_any_size_the_attrs_end(void **state)
{
	static const uint64_t entry_sizes[] = { 0, 79, UINT64_MAX };
	struct bench *bench = *state;

	add_attr(bench, 1, 128, 128, 0, 0);
	add_attr(bench, 2, 5, 128, 0, 0);
	add_attr(bench, 3, 128, 128, 0, 0);
	for (size_t i = 0; i < sizeof(entry_sizes) / sizeof(entry_sizes[0]); i++) {
		store(bench, 16, entry_sizes[i]);
		assert_int_equal(read_header(bench), 0);
		assert_int_equal(bench->data.events.count, 1);
		assert_int_equal(bench->data.bad_features, 1);
	}
}

static void an_attr_whose_ids_place_is_cut_off_is_left_out(void **state)
{
	struct bench *bench = *state;

	add_attr(bench, 1, 64, 64, 0, 0);
	add_attr(bench, 2, 64, 64, 0, 0);
	store(bench, ATTRS + 8, 80 + 79);
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.events.count, 1);
}

/* Two features: the table of their places, then their payloads. */
static void add_features(struct bench *bench)
{
	const size_t table = bench->size;

	set_feature(bench, PERF_FEATURE_HOSTNAME);
	set_feature(bench, 200);
	set_feature(bench, PERF_FEATURE_TOTAL_MEM);
	store(bench, table, table + 56); /* in order of the bits, wherever payloads lie */
	store(bench, table + 8, 8);
	store(bench, table + 16, table + 48);
	store(bench, table + 24, 8);
	store(bench, table + 32, table);
	store(bench, table + 40, 1);
	store(bench, table + 48, 1234);
	store(bench, table + 56, 4 | (uint64_t)'x' << 32);
	bench->size += 64;
}

static void features_are_where_the_table_behind_the_data_says(void **state)
{
	struct bench *bench = *state;

	add_features(bench);
	assert_int_equal(read_header(bench), 0);
	assert_string_equal(bench->data.features.hostname, "x");
	assert_int_equal(bench->data.features.total_mem_kb, 1234);
	assert_int_equal(bench->data.bad_features, 0);
	assert_int_equal(bench->data.features.bitmap[0], 1 << 3 | 1 << 10);
	assert_int_equal(bench->data.features.bitmap[3], 1 << 8);
}

static void features_that_are_cut_off_are_counted(void **state)
{
	struct bench *bench = *state;
	size_t whole;

	add_features(bench);
	whole = bench->size;
	bench->size = whole - 1; /* in the first one's payload */
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.bad_features, 1);
	assert_int_equal(bench->data.features.total_mem_kb, 1234);
	bench->size = whole - 9; /* in the second one's */
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.bad_features, 2);
	bench->size = whole - 17; /* in the table: nobody knows where the third one's is */
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.bad_features, 3);
	assert_null(bench->data.features.hostname);
}

/* What nobody asks for may be damaged as well. */
static void a_payload_that_is_cut_off_is_counted_whatever_it_is(void **state)
{
	struct bench *bench = *state;

	set_feature(bench, PERF_FEATURE_CPU_TOPOLOGY);
	store(bench, bench->size, bench->size);
	store(bench, bench->size + 8, 17);
	bench->size += 16;
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.bad_features, 1);
}

/* perf writes the size of the data, and then the features, when it is done. */
static void an_unfinished_recording_has_no_features(void **state)
{
	struct bench *bench = *state;

	add_features(bench);
	store(bench, DATA + 8, 0);
	assert_int_equal(read_header(bench), 0);
	assert_null(bench->data.features.hostname);
	assert_int_equal(bench->data.bad_features, 0);
}

static void a_size_that_wraps_leads_to_no_features(void **state)
{
	struct bench *bench = *state;

	add_features(bench);
	/* the table would be at 8 */
	store(bench, DATA + 8, (uint64_t)8 - HEADER);
	assert_int_equal(read_header(bench), 0);
	assert_int_equal(bench->data.bad_features, 0);
	assert_null(bench->data.features.hostname);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_magic_tells_what_a_file_is),
		WITH_FIXTURE(a_file_says_where_its_data_are),
		WITH_FIXTURE(data_must_begin_behind_the_header_and_in_the_file),
		WITH_FIXTURE(a_header_cut_anywhere_is_refused),
		WITH_FIXTURE(a_pipe_has_records_right_behind_its_short_header),
		WITH_FIXTURE(attrs_of_mixed_sizes_are_read),
		WITH_FIXTURE(ids_are_where_the_attr_says),
		WITH_FIXTURE(an_attr_of_impossible_size_is_stepped_over),
		WITH_FIXTURE(without_any_size_the_attrs_end),
		WITH_FIXTURE(an_attr_whose_ids_place_is_cut_off_is_left_out),
		WITH_FIXTURE(features_are_where_the_table_behind_the_data_says),
		WITH_FIXTURE(features_that_are_cut_off_are_counted),
		WITH_FIXTURE(a_payload_that_is_cut_off_is_counted_whatever_it_is),
		WITH_FIXTURE(an_unfinished_recording_has_no_features),
		WITH_FIXTURE(a_size_that_wraps_leads_to_no_features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
