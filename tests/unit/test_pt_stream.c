#include "decode/pt/pt_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/pt/pt_packet.h"
#include "tests/flow_bench.h"

enum { SIZE = 200 };

/* Spans of `span` bytes over the same memory, the last one shorter. */
static void make_queue(const uint8_t *data, size_t span, struct bench_queue *ret)
{
	*ret = (struct bench_queue){ .room = 0 };
	for (size_t from = 0; from < SIZE; from += span)
		bench_queue_add(ret, data + from, SIZE - from < span ? SIZE - from : span, false);
}

static void fill(uint8_t *data)
{
	for (unsigned i = 0; i < SIZE; i++)
		data[i] = (uint8_t)i;
}

/* Going from window to window, every byte is there once, and a packet's length after each one. */
static void windows_hand_out_the_whole_stream(void **state)
{
	uint8_t data[SIZE];

	fill(data);
	for (size_t span = 1; span <= SIZE; span++) {
		struct bench_queue bench;
		uint64_t position = 0;
		struct pt_window window;

		make_queue(data, span, &bench);
		for (;;) {
			size_t size, ahead;

			pt_window_at(&bench.queue, position, &window);
			size = (size_t)(window.limit - window.data);
			ahead = SIZE - (size_t)position - size;
			if (ahead > PT_WINDOW_SLACK)
				ahead = PT_WINDOW_SLACK;
			assert_int_equal(window.position, position);
			assert_true((size_t)(window.end - window.limit) >= ahead || window.last);
			assert_memory_equal(window.data, data + position,
					    (size_t)(window.end - window.data));
			if (window.last)
				break;
			assert_true(size > 0);
			position += size;
		}
		assert_int_equal(position + (uint64_t)(window.limit - window.data), SIZE);
		bench_queue_free(&bench);
	}
}

static void an_empty_queue_has_one_empty_window(void **state)
{
	const struct aux_queue queue = { 0 };
	struct pt_window window;

	pt_window_at(&queue, 0, &window);
	assert_true(window.last);
	assert_ptr_equal(window.data, window.end);
	assert_null(pt_span_at(&queue, 0));
	assert_int_equal(pt_psb_after(&queue, 0), 0);
}

static void no_window_reaches_over_a_loss(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_window window;
	uint8_t data[SIZE];

	fill(data);
	bench_queue_add(&bench, data, 10, false);
	bench_queue_add(&bench, data + 100, 50, true);
	pt_window_at(&bench.queue, 4, &window);
	assert_int_equal(window.end - window.data, 6);
	assert_ptr_equal(window.limit, window.end);
	assert_true(window.lost_after);
	assert_false(window.last);
	pt_window_at(&bench.queue, 10, &window);
	assert_int_equal(window.data[0], 100);
	bench_queue_free(&bench);
}

/* Where a packet reaches over the end of a span, the loss may be right behind it. */
static void a_loss_behind_a_stitch_is_at_its_end(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_window window;
	uint8_t data[SIZE];

	fill(data);
	bench_queue_add(&bench, data, 40, false);
	bench_queue_add(&bench, data + 40, 5, false);
	bench_queue_add(&bench, data + 100, 50, true);
	pt_window_at(&bench.queue, 36, &window);
	assert_int_equal(window.limit - window.data, 4);
	assert_int_equal(window.end - window.data, 9);
	assert_true(window.lost_after);
	bench_queue_free(&bench);
}

static void a_span_is_found_by_position(void **state)
{
	struct bench_queue bench;
	uint8_t data[SIZE];

	fill(data);
	make_queue(data, 30, &bench);
	for (uint64_t position = 0; position < SIZE; position++)
		assert_ptr_equal(pt_span_at(&bench.queue, position),
				 &bench.queue.spans[position / 30]);
	assert_ptr_equal(pt_span_at(&bench.queue, SIZE), &bench.queue.spans[SIZE / 30]);
	bench.queue.spans[1].file_offset = 5000;
	assert_int_equal(pt_file_offset(&bench.queue, 42), 5012);
	bench_queue_free(&bench);
}

static void a_psb_is_found_across_spans(void **state)
{
	for (size_t span = 1; span < 60; span++) {
		struct bench_queue bench;
		uint8_t data[SIZE];

		memset(data, 0x82, SIZE);
		for (unsigned i = 0; i < PT_PSB_SIZE; i += 2)
			data[100 + i] = data[151 + i] = 2;
		make_queue(data, span, &bench);
		assert_int_equal(pt_psb_after(&bench.queue, 0), 100);
		assert_int_equal(pt_psb_after(&bench.queue, 100), 100);
		assert_int_equal(pt_psb_after(&bench.queue, 101), 151);
		assert_int_equal(pt_psb_after(&bench.queue, 152), SIZE);
		bench_queue_free(&bench);
	}
}

static uint64_t resync(const struct bench_queue *bench, uint64_t position)
{
	bool lost;
	uint64_t psb = pt_psb_resync(&bench->queue, position, &lost);

	assert_false(lost);
	return psb;
}

static void behind_a_bad_packet_a_psb_may_have_begun_before_it(void **state)
{
	struct bench_queue bench;
	uint8_t data[SIZE];

	memset(data, 0x82, SIZE);
	for (unsigned i = 0; i < PT_PSB_SIZE; i += 2)
		data[4 + i] = data[100 + i] = 2;
	make_queue(data, 30, &bench);
	assert_int_equal(resync(&bench, 0), 4);
	assert_int_equal(resync(&bench, 4 + PT_PSB_SIZE - 1), 4);
	assert_int_equal(resync(&bench, 4 + PT_PSB_SIZE), 100);
	assert_int_equal(resync(&bench, 100 + PT_PSB_SIZE), SIZE);
	bench_queue_free(&bench);
}

static void behind_a_bad_packet_a_loss_comes_before_a_psb(void **state)
{
	struct bench_queue bench = { .room = 0 };
	uint8_t data[SIZE];
	bool lost;

	memset(data, 0x82, SIZE);
	for (unsigned i = 0; i < PT_PSB_SIZE; i += 2)
		data[100 + i] = 2;
	bench_queue_add(&bench, data, 30, false);
	bench_queue_add(&bench, data + 30, 20, true);
	bench_queue_add(&bench, data + 50, 100, false);
	bench_queue_add(&bench, data + 150, 10, true);
	for (uint64_t position = 0; position < 30; position++) {
		assert_int_equal(pt_psb_resync(&bench.queue, position, &lost), 30);
		assert_true(lost);
	}
	for (uint64_t position = 30; position < 116; position++)
		assert_int_equal(resync(&bench, position), 100);
	assert_int_equal(pt_psb_resync(&bench.queue, 116, &lost), 150);
	assert_true(lost);
	assert_int_equal(resync(&bench, 150), 160);
	bench_queue_free(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_hand_out_the_whole_stream),
		cmocka_unit_test(an_empty_queue_has_one_empty_window),
		cmocka_unit_test(no_window_reaches_over_a_loss),
		cmocka_unit_test(a_loss_behind_a_stitch_is_at_its_end),
		cmocka_unit_test(a_span_is_found_by_position),
		cmocka_unit_test(a_psb_is_found_across_spans),
		cmocka_unit_test(behind_a_bad_packet_a_psb_may_have_begun_before_it),
		cmocka_unit_test(behind_a_bad_packet_a_loss_comes_before_a_psb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
