#include "decode/perf/perf_auxtrace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"

enum { MOST = 256, PSB = 16 };

static const char psb[PSB + 1] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";

struct bench {
	struct perf_data data;
	struct perf_auxtrace auxtrace;
	uint8_t *kept[32]; /* the bytes of records */
	size_t count;
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->data.pt.per_cpu = true;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_auxtrace_deinit(&bench->auxtrace);
	perf_data_close(&bench->data);
	for (size_t i = 0; i < bench->count; i++)
		free(bench->kept[i]);
	free(bench);
	return 0;
}

static uint8_t *keep(struct bench *bench, size_t size)
{
	uint8_t *bytes = calloc(1, size);

	assert_non_null(bytes);
	assert_true(bench->count < sizeof(bench->kept) / sizeof(bench->kept[0]));
	return bench->kept[bench->count++] = bytes;
}

struct queue_of {
	uint32_t index;
	int32_t tid, cpu;
};

/* Add a buffer whose place in the file is 1000 times that in the trace. */
static void add(struct bench *bench, struct queue_of queue, uint64_t offset, const void *trace,
		size_t size)
{
	uint8_t *record = keep(bench, 48 + size);
	const uint64_t reference = 5000 + offset;
	struct perf_item item = {
		.data = record,
		.type = PERF_AUXTRACE,
		.size = 48,
		.payload = { record + 48, size },
		.payload_offset = 1000 * offset,
	};

	memcpy(record + 16, &offset, 8);
	memcpy(record + 24, &reference, 8);
	memcpy(record + 32, &queue, 12);
	if (size)
		memcpy(record + 48, trace, size);
	assert_int_equal(perf_auxtrace_add(&bench->auxtrace, &item), 0);
}

static const struct queue_of first_cpu = { 0, -1, 0 };

static void finish(struct bench *bench)
{
	assert_int_equal(perf_auxtrace_finish(&bench->auxtrace, &bench->data), 0);
}

/* All bytes of a queue, which must follow on each other in it. */
static void assert_stream(const struct aux_queue *queue, const void *expected, size_t size)
{
	uint8_t bytes[MOST * 2];
	uint64_t at = 0;

	for (size_t i = 0; i < queue->count; i++) {
		assert_int_equal(queue->spans[i].position, at);
		assert_true(queue->spans[i].size > 0 && at + queue->spans[i].size <= sizeof(bytes));
		memcpy(bytes + at, queue->spans[i].data, queue->spans[i].size);
		at += queue->spans[i].size;
	}
	assert_int_equal(queue->size, size);
	assert_int_equal(at, size);
	assert_memory_equal(bytes, expected, size);
}

static void buffers_are_queued_by_index_in_order_of_arrival(void **state)
{
	const struct queue_of late = { 7, -1, 3 }, thread = { 2, 4711, -1 };
	struct bench *bench = *state;
	const struct aux_queue *queues;

	add(bench, late, 100, "late one", 8);
	add(bench, thread, 0, "thread", 6);
	add(bench, late, 108, "late two", 8);
	add(bench, thread, 6, "", 0);
	finish(bench);
	queues = bench->data.queues.items;
	assert_int_equal(bench->data.queues.count, 2);
	assert_int_equal(queues[0].index, 2);
	assert_int_equal(queues[0].cpu, -1);
	assert_int_equal(queues[0].tid, 4711);
	assert_int_equal(queues[0].pid, -1);
	assert_stream(&queues[0], "thread", 6);
	assert_int_equal(queues[1].index, 7);
	assert_int_equal(queues[1].cpu, 3);
	assert_int_equal(queues[1].tid, -1);
	assert_stream(&queues[1], "late onelate two", 16);
	assert_int_equal(queues[1].spans[1].trace_offset, 108);
	assert_int_equal(queues[1].spans[1].file_offset, 108000);
	assert_int_equal(queues[1].spans[1].reference, 5108);
	assert_false(queues[1].spans[0].lost_before || queues[1].spans[1].lost_before);
}

/* A CPU's buffer may name the thread that was on it as well. */
static void a_queue_of_a_cpu_is_of_no_thread(void **state)
{
	struct bench *bench = *state;

	add(bench, (struct queue_of){ 0, 4711, 0 }, 0, "trace", 5);
	finish(bench);
	assert_int_equal(bench->data.queues.items[0].cpu, 0);
	assert_int_equal(bench->data.queues.items[0].tid, -1);
}

static void without_trace_there_are_no_queues(void **state)
{
	struct bench *bench = *state;

	add(bench, first_cpu, 0, "", 0);
	finish(bench);
	assert_int_equal(bench->data.queues.count, 0);
	assert_int_equal(bench->auxtrace.pieces.count, 0);
}

static void bytes_that_are_missing_are_told(void **state)
{
	struct bench *bench = *state;

	add(bench, first_cpu, 0, "abcd", 4);
	add(bench, first_cpu, 5, "fghi", 4);
	add(bench, first_cpu, 9, "jklm", 4);
	finish(bench);
	assert_stream(&bench->data.queues.items[0], "abcdfghijklm", 12);
	assert_true(bench->data.queues.items[0].spans[1].lost_before);
	assert_false(bench->data.queues.items[0].spans[2].lost_before);
}

/* perf writes up to seven zeroes behind a buffer. */
static void padding_between_buffers_is_left_out(void **state)
{
	struct bench *bench = *state;

	add(bench, first_cpu, 0, "a\0\0\0\0\0\0\0", 8);
	add(bench, first_cpu, 1, "bcdef\0\0\0", 8);
	add(bench, first_cpu, 7, "h", 1);
	finish(bench);
	/* the one zero is of the trace */
	assert_stream(&bench->data.queues.items[0], "abcdef\0h", 8);
	assert_false(bench->data.queues.items[0].spans[2].lost_before);
}

static void what_is_no_padding_stays(void **state)
{
	struct bench *bench = *state;

	add(bench, first_cpu, 0, "ab\0\0xx\0\0", 8);
	add(bench, first_cpu, 2, "c", 1);
	add(bench, (struct queue_of){ 1, -1, 1 }, 0, "d\0\0\0\0\0\0\0\0", 9);
	add(bench, (struct queue_of){ 1, -1, 1 }, 1, "e", 1); /* eight zeroes */
	add(bench, (struct queue_of){ 2, -1, 2 }, 0, "\0\0\0", 3);
	add(bench, (struct queue_of){ 2, -1, 2 }, 0, "f", 1); /* nothing would stay */
	finish(bench);
	assert_stream(&bench->data.queues.items[0], "ab\0\0xx\0\0c", 9);
	assert_stream(&bench->data.queues.items[1], "d\0\0\0\0\0\0\0\0e", 10);
	assert_stream(&bench->data.queues.items[2], "\0\0\0f", 4);
}

/* A snapshot of `head` bytes, a PSB and `size` more from a trace of which each byte is another. */
static size_t make_snapshot(uint8_t *snapshot, uint8_t first, size_t head, size_t size)
{
	for (size_t i = 0; i < head; i++)
		snapshot[i] = (uint8_t)(first + i);
	memcpy(snapshot + head, psb, PSB);
	for (size_t i = 0; i < size; i++)
		snapshot[head + PSB + i] = (uint8_t)(0x20 + i);
	return head + PSB + size;
}

static void snapshots_stand_alone(void **state)
{
	uint8_t one[MOST], other[MOST];
	const size_t size = make_snapshot(one, 0x20, 5, 10);
	struct bench *bench = *state;

	(void)make_snapshot(other, 0x40, 5, 10);
	other[size - 1] = 0xee;
	bench->data.pt.snapshot = true;
	add(bench, first_cpu, 100, one, size);
	add(bench, first_cpu, 100 + size, other, size);
	finish(bench);
	assert_int_equal(bench->data.queues.items[0].count, 2);
	assert_int_equal(bench->data.queues.items[0].size, 2 * size);
	assert_true(bench->data.queues.items[0].spans[1].lost_before);
	assert_int_equal(bench->data.queues.items[0].repeat_count, 0);
}

static void what_a_snapshot_repeats_is_cut_off(void **state)
{
	enum { HEAD = 5, BODY = 20, SKIP = 3 };
	uint8_t whole[MOST];
	const size_t size = make_snapshot(whole, 0x20, HEAD, BODY + 30);
	const size_t first = HEAD + PSB + BODY;
	const struct aux_queue *queue;
	struct bench *bench = *state;

	bench->data.pt.snapshot = true;
	add(bench, first_cpu, 100, whole, first);
	add(bench, first_cpu, 200, whole + SKIP, size - SKIP);
	finish(bench);
	queue = &bench->data.queues.items[0];
	assert_stream(queue, whole, size);
	assert_false(queue->spans[1].lost_before);
	assert_int_equal(queue->spans[1].trace_offset, 200 + first - SKIP);
	assert_int_equal(queue->spans[1].file_offset, 200000 + first - SKIP);
	assert_int_equal(queue->repeat_count, 1);
	assert_int_equal(queue->repeats[0].position, SKIP);
	assert_int_equal(queue->repeats[0].size, first - SKIP);
	assert_int_equal(queue->repeats[0].file_offset, 200000);
}

static void a_snapshot_that_is_all_repeated_adds_nothing(void **state)
{
	uint8_t whole[MOST];
	const size_t size = make_snapshot(whole, 0x20, 5, 20);
	const struct aux_queue *queue;
	struct bench *bench = *state;

	bench->data.pt.snapshot = true;
	add(bench, first_cpu, 100, whole, size);
	add(bench, first_cpu, 200, whole, size);
	finish(bench);
	queue = &bench->data.queues.items[0];
	assert_int_equal(queue->count, 1);
	assert_stream(queue, whole, size);
	assert_int_equal(queue->spans[0].reference, 5200); /* still running then */
	assert_int_equal(queue->repeat_count, 1);
}

/* The zeroes behind the first snapshot were not in the buffer. */
static void padding_before_what_is_new_is_left_out(void **state)
{
	uint8_t whole[MOST], first[MOST];
	const size_t size = make_snapshot(whole, 0x20, 5, 40), cut = 5 + PSB + 20;
	struct bench *bench = *state;

	for (size_t pad = 0; pad < 8; pad++) {
		memcpy(first, whole, cut);
		memset(first + cut, 0, pad);
		bench->data.pt.snapshot = true;
		add(bench, (struct queue_of){ (uint32_t)pad, -1, (int32_t)pad }, 100, first,
		    cut + pad);
		add(bench, (struct queue_of){ (uint32_t)pad, -1, (int32_t)pad }, 200, whole, size);
	}
	finish(bench);
	for (size_t pad = 0; pad < 8; pad++)
		assert_stream(&bench->data.queues.items[pad], whole, size);
}

/* The PSB that the overlap begins at need not be the first one. */
static void a_later_packet_may_begin_what_is_repeated(void **state)
{
	uint8_t whole[MOST];
	size_t size = make_snapshot(whole, 0x20, 5, 20), second = size;
	struct bench *bench = *state;

	size += make_snapshot(whole + size, 0x60, 3, 40);
	bench->data.pt.snapshot = true;
	add(bench, first_cpu, 100, whole, size - 10);
	add(bench, first_cpu, 200, whole + second, size - second);
	finish(bench);
	assert_stream(&bench->data.queues.items[0], whole, size);
}

static void without_a_psb_nothing_is_known_to_repeat(void **state)
{
	struct bench *bench = *state;

	bench->data.pt.snapshot = true;
	add(bench, first_cpu, 100, "same bytes", 10);
	add(bench, first_cpu, 110, "same bytes", 10);
	finish(bench);
	assert_stream(&bench->data.queues.items[0], "same bytessame bytes", 20);
	assert_true(bench->data.queues.items[0].spans[1].lost_before);
}

/* A PSB everywhere must not make it take the square of the time. */
static void made_up_snapshots_do_not_take_long(void **state)
{
	enum { LARGE = 4 << 20 };
	struct bench *bench = *state;
	uint8_t *trace = malloc(LARGE);

	assert_non_null(trace);
	for (size_t i = 0; i < LARGE; i += 2)
		memcpy(trace + i, "\x02\x82", 2);
	bench->data.pt.snapshot = true;
	trace[LARGE - 9] = 0x19; /* equal up to nearly the end, from any PSB on */
	add(bench, first_cpu, 100, trace, LARGE);
	trace[LARGE - 9] = 0x82;
	add(bench, first_cpu, 200, trace, LARGE);
	free(trace);
	finish(bench);
	assert_int_equal(bench->data.queues.items[0].count, 2);
	assert_int_equal(bench->data.queues.items[0].size, 2 * (uint64_t)LARGE);
}

static void add_sample(struct bench *bench, struct perf_record record, const char *trace)
{
	uint8_t *bytes = keep(bench, 100);
	const size_t size = strlen(trace);

	memcpy(bytes + 40, trace, size);
	record.data = bytes;
	assert_int_equal(perf_auxtrace_add_sample(&bench->auxtrace, &bench->data, &record,
						  (struct bytes){ bytes + 40, size }),
			 0);
}

static void samples_without_an_index_are_of_their_cpu(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_sample(bench,
		   (struct perf_record){ .file_offset = 3000, .time = 70, .cpu = 4, .tid = 5 },
		   "trace");
	add_sample(bench, (struct perf_record){ .cpu = 3, .tid = 5 }, "");
	finish(bench);
	assert_int_equal(bench->data.queues.count, 1);
	queue = &bench->data.queues.items[0];
	assert_int_equal(queue->index, 4);
	assert_int_equal(queue->cpu, 4);
	assert_int_equal(queue->tid, -1);
	assert_int_equal(queue->spans[0].file_offset, 3040);
	assert_int_equal(queue->spans[0].stop_ns, 70);
	assert_int_equal(queue->spans[0].reference, 0);
}

static void samples_of_threads_are_of_their_thread(void **state)
{
	struct bench *bench = *state;

	bench->data.pt.per_cpu = false;
	add_sample(bench, (struct perf_record){ .cpu = 4, .tid = 5 }, "trace");
	finish(bench);
	assert_int_equal(bench->data.queues.items[0].index, 5);
	assert_int_equal(bench->data.queues.items[0].cpu, -1);
	assert_int_equal(bench->data.queues.items[0].tid, 5);
}

static void samples_go_where_the_index_has_their_id(void **state)
{
	static const struct perf_id ids[] = { { .id = 8, .index = 12 },
					      { .id = 9, .index = -1 },
					      { .id = 10, .index = 0 } };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_true(vec_push(&bench->data.ids, ids[i]));
	add_sample(bench, (struct perf_record){ .id = 8, .cpu = 4 }, "one");
	add_sample(bench, (struct perf_record){ .id = 9, .cpu = 4 }, "other");
	add_sample(bench, (struct perf_record){ .id = 10, .cpu = 4 }, "first");
	finish(bench);
	assert_int_equal(bench->data.queues.count, 3);
	assert_int_equal(bench->data.queues.items[0].index, 0);
	assert_stream(&bench->data.queues.items[0], "first", 5);
	assert_int_equal(bench->data.queues.items[1].index, 4);
	assert_stream(&bench->data.queues.items[1], "other", 5);
	assert_int_equal(bench->data.queues.items[2].index, 12);
	assert_int_equal(bench->data.queues.items[2].cpu, 4);
}

/* Trace before a sample was made before its time. */
static void the_time_of_a_sample_bounds_the_tsc(void **state)
{
	struct bench *bench = *state;

	bench->data.pt.conv =
		(struct time_conv){ .valid = true, .shift = 1, .mult = 1, .zero = 10 };
	add_sample(bench, (struct perf_record){ .time = 110, .cpu = 0 }, "trace");
	finish(bench);
	assert_int_equal(bench->data.queues.items[0].spans[0].reference, 200);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(buffers_are_queued_by_index_in_order_of_arrival),
		WITH_FIXTURE(a_queue_of_a_cpu_is_of_no_thread),
		WITH_FIXTURE(without_trace_there_are_no_queues),
		WITH_FIXTURE(bytes_that_are_missing_are_told),
		WITH_FIXTURE(padding_between_buffers_is_left_out),
		WITH_FIXTURE(what_is_no_padding_stays),
		WITH_FIXTURE(snapshots_stand_alone),
		WITH_FIXTURE(what_a_snapshot_repeats_is_cut_off),
		WITH_FIXTURE(a_snapshot_that_is_all_repeated_adds_nothing),
		WITH_FIXTURE(padding_before_what_is_new_is_left_out),
		WITH_FIXTURE(a_later_packet_may_begin_what_is_repeated),
		WITH_FIXTURE(without_a_psb_nothing_is_known_to_repeat),
		WITH_FIXTURE(made_up_snapshots_do_not_take_long),
		WITH_FIXTURE(samples_without_an_index_are_of_their_cpu),
		WITH_FIXTURE(samples_of_threads_are_of_their_thread),
		WITH_FIXTURE(samples_go_where_the_index_has_their_id),
		WITH_FIXTURE(the_time_of_a_sample_bounds_the_tsc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
