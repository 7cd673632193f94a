#include "decode/pt/trace_points.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

static const struct pt_config config = { .tsc = true };

/* A segment with something in every field that a point keeps. */
static struct pt_segment make_segment(uint64_t from, uint64_t now)
{
	struct pt_segment segment = {
		.from = from,
		.context = { true, true, true, 32, 0x1234, 0x5000 },
		.clock = { .config = &config,
			   .now = now,
			   .base = 3,
			   .anchor = 4,
			   .ctc = -5,
			   .cycles = 6,
			   .mtc_cycles = 7,
			   .mtc_base = 8,
			   .ratio = 9,
			   .nominal = 13,
			   .ctc16 = 0xfff0,
			   .last_mtc = 0xfe,
			   .cbr = 0xfd,
			   .known = true,
			   .have_ctc = true,
			   .doubtful = true,
			   .mtc_unseen = true,
			   .calibrating = true,
			   .reference = 10,
			   .corrections = 11,
			   .translated = 12 },
	};

	pt_offsets_set(&segment.clock.offsets, 0x1234, 77);
	pt_offsets_set(&segment.clock.offsets, 0x1235, (uint64_t)-78);
	return segment;
}

static void a_point_gives_back_the_segment(void **state)
{
	struct pt_segment segment = make_segment(4096, 1000), found;
	const struct aux_queue queue = { .index = 1 };
	struct trace_points points = { 0 };

	assert_int_equal(trace_points_add(&points, &segment), 0);
	found = trace_points_segment(&points, 0, &queue, &config);
	assert_int_equal(found.from, 4096);
	assert_ptr_equal(found.queue, &queue);
	assert_false(found.fresh || found.lost);
	assert_memory_equal(&found.context, &segment.context, sizeof(found.context));
	assert_memory_equal(&found.clock, &segment.clock, sizeof(found.clock));
	assert_true(trace_points_equal(&points, 0, &segment));
	trace_points_free(&points);
}

static void knowledge_that_differs_is_seen(void **state)
{
	struct pt_segment segment = make_segment(4096, 1000), other;
	struct trace_points points = { 0 };

	assert_int_equal(trace_points_add(&points, &segment), 0);
	other = segment;
	other.clock.offsets.items[1].offset++;
	assert_false(trace_points_equal(&points, 0, &other));
	other = segment;
	other.clock.offsets.count--;
	assert_false(trace_points_equal(&points, 0, &other));
	other = segment;
	other.context.nr = false;
	assert_false(trace_points_equal(&points, 0, &other));
	other = segment;
	other.fresh = true;
	assert_false(trace_points_equal(&points, 0, &other));
	trace_points_free(&points);
}

static void points_are_kept_in_order_only(void **state)
{
	struct trace_points points = { 0 };
	struct pt_segment segment;

	for (uint64_t i = 1; i < 6; i++) {
		segment = make_segment(i * 100, i * 10);
		assert_int_equal(trace_points_add(&points, &segment), 0);
	}
	assert_int_equal(points.count, 5);
	segment = make_segment(500, 60); /* no further */
	assert_int_equal(trace_points_add(&points, &segment), 0);
	segment = make_segment(600, 49); /* earlier */
	assert_int_equal(trace_points_add(&points, &segment), 0);
	assert_int_equal(points.count, 5);
	trace_points_free(&points);
}

static void points_are_found_by_time(void **state)
{
	const struct time_conv conv = { .valid = true, .mult = 2, .zero = 5 };
	struct trace_points points = { 0 };

	assert_int_equal(trace_points_before(&points, &conv, 100), 0);
	for (uint64_t i = 1; i < 6; i++) {
		struct pt_segment segment = make_segment(i * 100, i * 10);

		assert_int_equal(trace_points_add(&points, &segment), 0);
	}
	assert_int_equal(trace_points_before(&points, &conv, 25), 0); /* the first is at 25 ns */
	assert_int_equal(trace_points_before(&points, &conv, 26), 1);
	assert_int_equal(trace_points_before(&points, &conv, 65), 2);
	assert_int_equal(trace_points_before(&points, &conv, UINT64_MAX), 5);
	trace_points_free(&points);
}

static void words_make_the_same_points_again(void **state)
{
	struct trace_points points = { 0 }, again = { 0 };
	size_t at = 0;

	for (uint64_t i = 1; i < 4; i++) {
		struct pt_segment segment = make_segment(i * 100, i * 10);

		segment.clock.offsets.count = (unsigned)i - 1;
		assert_int_equal(trace_points_add(&points, &segment), 0);
	}
	while (at < points.words.count) {
		int r = trace_points_take(&again, points.words.items + at, points.words.count - at);

		assert_true(r >= TRACE_POINT_WORDS);
		at += (size_t)r;
	}
	assert_int_equal(again.count, 3);
	assert_int_equal(again.words.count, points.words.count);
	assert_memory_equal(again.words.items, points.words.items, at * sizeof(uint64_t));
	assert_memory_equal(again.items, points.items, 3 * sizeof(*points.items));
	trace_points_free(&again);
	trace_points_free(&points);
}

/* Word by word, what no walk could have written. */
static void impossible_words_are_refused(void **state)
{
	static const struct {
		size_t word;
		uint64_t value;
	} cases[] = {
		{ 1, 2 },                   /* neither host nor guest */
		{ 4, 33 },                  /* bits of code */
		{ 10, UINT64_MAX / 2 },     /* crystal ticks */
		{ 10, UINT64_MAX / 2 + 2 }, /* the same before the anchor */
		{ 16, UINT16_MAX + 1 },     /* 16 bits of the crystal's count */
		{ 17, 256 },                /* an MTC's payload */
		{ 23, 255 },                /* a flag of the clock */
		{ 27, PT_OFFSETS_MAX + 1 }, /* TSC offsets */
		{ 27, 3 },                  /* more than there are words */
	};
	struct pt_segment segment = make_segment(4096, 1000);
	struct trace_points points = { 0 }, none = { 0 };

	assert_int_equal(trace_points_add(&points, &segment), 0);
	for (size_t i = 0; i < points.words.count; i++)
		assert_int_equal(trace_points_take(&none, points.words.items, i), -PTVM_BAD_INPUT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t words[TRACE_POINT_WORDS + 4];

		memcpy(words, points.words.items, sizeof(words));
		words[cases[i].word] = cases[i].value;
		assert_int_equal(trace_points_take(&none, words, TRACE_POINT_WORDS + 4),
				 -PTVM_BAD_INPUT);
	}
	assert_int_equal(none.count, 0);
	trace_points_free(&points);
}

static void dropped_points_are_remembered_as_bad(void **state)
{
	struct pt_segment segment = make_segment(4096, 1000);
	struct trace_points points = { 0 };

	assert_int_equal(trace_points_add(&points, &segment), 0);
	trace_points_drop(&points);
	assert_int_equal(points.count, 0);
	assert_true(points.bad);
	assert_int_equal(trace_points_add(&points, &segment), 0);
	assert_int_equal(points.count, 1);
	trace_points_free(&points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_gives_back_the_segment),
		cmocka_unit_test(knowledge_that_differs_is_seen),
		cmocka_unit_test(points_are_kept_in_order_only),
		cmocka_unit_test(points_are_found_by_time),
		cmocka_unit_test(words_make_the_same_points_again),
		cmocka_unit_test(impossible_words_are_refused),
		cmocka_unit_test(dropped_points_are_remembered_as_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
