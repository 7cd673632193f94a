#include "decode/perf/aux_loss.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/perf/perf_record.h"
#include "tests/record_make.h"

enum { MOST = 16, PT_ID = 1, OTHER_ID = 2, SPAN = 100 };

/* A recording with a queue of each CPU, and AUX records. */
struct bench {
	struct perf_data data;
	struct perf_event events[2];
	uint8_t trace[MOST * SPAN];
	struct perf_record made[MOST];
	size_t count;
};

static int set_up(void **state)
{
	static const struct perf_id ids[] = { { .id = PT_ID, .event = 0 },
					      { .id = OTHER_ID, .event = 1 } };
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->events[0].is_pt = true;
	bench->data.events.items = bench->events;
	bench->data.events.count = 2;
	for (size_t i = 0; i < 2; i++)
		assert_true(vec_push(&bench->data.ids, ids[i]));
	bench->data.pt.per_cpu = true;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	bench->data.events.items = NULL;
	perf_data_close(&bench->data);
	for (size_t i = 0; i < bench->count; i++)
		record_drop(&bench->made[i]);
	free(bench);
	return 0;
}

/* Spans of 100 bytes one behind the other, from 1000 on in the kernel's count. */
static void add_queue(struct bench *bench, int32_t cpu, int32_t tid, size_t spans)
{
	struct aux_queue queue = { .cpu = cpu,
				   .tid = tid,
				   .spans = calloc(spans, sizeof(*queue.spans)),
				   .count = spans,
				   .size = spans * SPAN };

	assert_non_null(queue.spans);
	for (size_t i = 0; i < spans; i++)
		queue.spans[i] = (struct aux_span){ .data = bench->trace + i * SPAN,
						    .size = SPAN,
						    .position = i * SPAN,
						    .file_offset = 50000 + i * SPAN,
						    .trace_offset = 1000 + i * SPAN };
	assert_true(vec_push(&bench->data.queues, queue));
}

static struct perf_record *add_aux(struct bench *bench, uint64_t time, int32_t cpu, uint64_t offset,
				   uint64_t size, uint64_t flags)
{
	const uint64_t body[] = { offset, size, flags };
	struct perf_record record = record_make(PERF_AUX, 0, body, sizeof(body));

	assert_true(bench->count < MOST);
	bench->made[bench->count++] = record;
	record.time = time;
	record.cpu = cpu;
	record.tid = 1000 + cpu;
	record.id = PT_ID;
	assert_true(vec_push(&bench->data.records, record));
	return &bench->data.records.items[bench->data.records.count - 1];
}

static const struct aux_queue *apply(struct bench *bench)
{
	assert_int_equal(aux_loss_apply(&bench->data), 0);
	return bench->data.queues.items;
}

static void assert_span(const struct aux_queue *queue, size_t index, uint64_t position,
			uint64_t size, bool lost_before)
{
	const struct aux_span *span = &queue->spans[index];

	assert_true(index < queue->count);
	assert_int_equal(span->position, position);
	assert_int_equal(span->size, size);
	assert_int_equal(span->lost_before, lost_before);
	assert_int_equal(span->file_offset, 50000 + position);
	assert_int_equal(span->trace_offset, 1000 + position);
}

static void nothing_is_lost_without_a_flag(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 1);
	add_aux(bench, 10, 0, 1000, 50, 0);
	add_aux(bench, 20, 0, 1050, 20, PERF_AUX_OVERWRITE);
	queue = apply(bench);
	assert_int_equal(queue->loss_count, 0);
	assert_int_equal(queue->count, 1);
	assert_span(queue, 0, 0, SPAN, false);
}

static void each_kind_of_loss_splits_a_span(void **state)
{
	static const uint64_t flags[] = { PERF_AUX_TRUNCATED, PERF_AUX_PARTIAL,
					  PERF_AUX_COLLISION };
	struct bench *bench = *state;

	for (int32_t i = 0; i < 3; i++) {
		add_queue(bench, i, -1, 1);
		add_aux(bench, 10, i, 1000, 30, flags[i] | PERF_AUX_OVERWRITE);
	}
	(void)apply(bench);
	for (int32_t i = 0; i < 3; i++) {
		const struct aux_queue *queue = &bench->data.queues.items[i];

		assert_int_equal(queue->loss_count, 1);
		assert_int_equal(queue->losses[0].time, 10);
		assert_int_equal(queue->losses[0].cpu, i);
		assert_int_equal(queue->losses[0].tid, 1000 + i);
		assert_int_equal(queue->losses[0].position, 30);
		assert_int_equal(queue->losses[0].flags, flags[i] | PERF_AUX_OVERWRITE);
		assert_int_equal(queue->count, 2);
		assert_span(queue, 0, 0, 30, false);
		assert_span(queue, 1, 30, 70, true);
		assert_ptr_equal(queue->spans[1].data, bench->trace + 30);
	}
}

static void losses_are_sorted_by_place(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 2);
	add_aux(bench, 10, 0, 1000, 150, PERF_AUX_TRUNCATED);
	add_aux(bench, 30, 0, 1000, 40, PERF_AUX_TRUNCATED);
	add_aux(bench, 20, 0, 1000, 40, PERF_AUX_PARTIAL);
	add_aux(bench, 40, 0, 1000, 40, PERF_AUX_PARTIAL);
	queue = apply(bench);
	assert_int_equal(queue->loss_count, 4);
	assert_int_equal(queue->losses[0].time, 20);
	assert_int_equal(queue->losses[1].time, 30);
	assert_int_equal(queue->losses[2].time, 40);
	assert_int_equal(queue->losses[3].time, 10);
	assert_int_equal(queue->count, 4);
	assert_span(queue, 0, 0, 40, false);
	assert_span(queue, 1, 40, 60, true);
	assert_span(queue, 2, 100, 50, false);
	assert_span(queue, 3, 150, 50, true);
}

static void a_loss_between_spans_splits_none(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 2);
	add_aux(bench, 10, 0, 1000, 100, PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue->count, 2);
	assert_span(queue, 0, 0, 100, false);
	assert_span(queue, 1, 100, 100, true);
}

/* Before the first byte nothing can be lost that a packet could reach across. */
static void losses_before_and_behind_all_trace_split_nothing(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 1);
	add_aux(bench, 10, 0, 900, 50, PERF_AUX_TRUNCATED);
	add_aux(bench, 20, 0, 1000, 100, PERF_AUX_TRUNCATED);
	add_aux(bench, 30, 0, 5000, 100, PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue->loss_count, 3);
	assert_int_equal(queue->losses[0].position, 0);
	assert_int_equal(queue->losses[1].position, SPAN);
	assert_int_equal(queue->losses[2].position, SPAN);
	assert_int_equal(queue->count, 1);
	assert_span(queue, 0, 0, SPAN, false);
}

/* Part of the trace is not in the recording: offsets in it are those behind the last that is. */
static void a_loss_in_a_hole_is_behind_what_is_before(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 2);
	bench->data.queues.items[0].spans[1].trace_offset = 3000;
	add_aux(bench, 10, 0, 1000, 500, PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue->losses[0].position, SPAN);
	assert_int_equal(queue->count, 2);
	assert_true(queue->spans[1].lost_before);
}

static void records_of_other_events_and_cpus_say_nothing(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 1, -1, 1);
	add_queue(bench, 3, -1, 1);
	add_aux(bench, 10, 1, 1000, 50, PERF_AUX_TRUNCATED)->id = OTHER_ID;
	add_aux(bench, 10, 2, 1000, 50, PERF_AUX_TRUNCATED);
	add_aux(bench, 10, 4, 1000, 50, PERF_AUX_TRUNCATED);
	add_aux(bench, 10, 0, 1000, 50, PERF_AUX_TRUNCATED);
	add_aux(bench, 10, 1, 1000, 50, PERF_AUX_TRUNCATED)->type = PERF_LOST;
	add_aux(bench, 10, 1, 1000, 50, PERF_AUX_TRUNCATED)->size = 31;
	queue = apply(bench);
	assert_int_equal(queue[0].loss_count + queue[1].loss_count, 0);
}

/* Old perf gave no ids to some records. */
static void an_unknown_id_may_be_that_of_the_trace(void **state)
{
	struct bench *bench = *state;

	add_queue(bench, 1, -1, 1);
	add_aux(bench, 10, 1, 1000, 50, PERF_AUX_TRUNCATED)->id = 99;
	assert_int_equal(apply(bench)->loss_count, 1);
}

static void queues_of_threads_are_found_by_thread(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	bench->data.pt.per_cpu = false;
	add_queue(bench, -1, 1007, 1);
	add_queue(bench, -1, 1005, 1);
	add_aux(bench, 10, 5, 1000, 50, PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue[0].loss_count, 0);
	assert_int_equal(queue[1].loss_count, 1);
}

/* The queues are sorted by index, not by CPU. */
static void each_queue_of_many_is_found(void **state)
{
	static const int32_t cpus[] = { 5, 0, 7, 2, 9, 1, 3 };
	enum { COUNT = sizeof(cpus) / sizeof(cpus[0]) };
	struct bench *bench = *state;

	for (size_t i = 0; i < COUNT; i++) {
		add_queue(bench, cpus[i], -1, 1);
		add_aux(bench, (uint64_t)i + 1, cpus[i], 1000, 50, PERF_AUX_TRUNCATED);
	}
	(void)apply(bench);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(bench->data.queues.items[i].loss_count, 1);
		assert_int_equal(bench->data.queues.items[i].losses[0].time, i + 1);
	}
}

static void a_record_dates_the_end_of_its_span(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 3);
	bench->data.queues.items[0].spans[2].stop_ns = 5; /* of a sample */
	memset(bench->trace, 0xff, sizeof(bench->trace));
	add_aux(bench, 10, 0, 1000, 100, 0);
	add_aux(bench, 20, 0, 1100, 99, 0); /* the recorder copied more than this one tells */
	add_aux(bench, 30, 0, 1200, 100, 0);
	queue = apply(bench);
	assert_int_equal(queue->spans[0].stop_ns, 10);
	assert_int_equal(queue->spans[1].stop_ns, 0);
	assert_int_equal(queue->spans[2].stop_ns, 5);
}

/* perf pads what it copies to 8 bytes. */
static void padding_is_no_trace(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 2);
	memset(bench->trace + SPAN - 7, 0, 7);
	memset(bench->trace + 2 * SPAN - 8, 0, 8);
	add_aux(bench, 10, 0, 1000, SPAN - 7, 0);
	add_aux(bench, 20, 0, 1100, SPAN - 8, 0);
	queue = apply(bench);
	assert_int_equal(queue->spans[0].stop_ns, 10);
	assert_int_equal(queue->spans[1].stop_ns, 0);
}

/* There a record's offset is where the buffer ended, which its AUXTRACE repeats. */
static void the_record_of_a_loss_dates_what_is_before_it(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 1);
	add_aux(bench, 10, 0, 1000, 30, PERF_AUX_TRUNCATED);
	add_aux(bench, 20, 0, 1030, SPAN - 30, 0);
	queue = apply(bench);
	assert_int_equal(queue->count, 2);
	assert_int_equal(queue->spans[0].stop_ns, 10);
	assert_int_equal(queue->spans[1].stop_ns, 20);
}

static void in_snapshots_offsets_are_the_same(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	bench->data.pt.snapshot = true;
	add_queue(bench, 0, -1, 3);
	add_aux(bench, 10, 0, 1100, 4096, PERF_AUX_OVERWRITE);
	add_aux(bench, 20, 0, 1201, 4096, PERF_AUX_OVERWRITE | PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue->spans[0].stop_ns, 0);
	assert_int_equal(queue->spans[1].stop_ns, 10);
	assert_int_equal(queue->spans[2].stop_ns, 0);
	/* where in the stream it was is not known */
	assert_int_equal(queue->losses[0].position, 3 * SPAN);
	assert_int_equal(queue->count, 3);
}

static void sizes_that_wrap_do_no_harm(void **state)
{
	struct bench *bench = *state;
	const struct aux_queue *queue;

	add_queue(bench, 0, -1, 2);
	add_aux(bench, 10, 0, UINT64_MAX, UINT64_MAX, PERF_AUX_TRUNCATED);
	add_aux(bench, 10, 0, 1050, UINT64_MAX, PERF_AUX_TRUNCATED);
	queue = apply(bench);
	assert_int_equal(queue->loss_count, 2);
	assert_int_equal(queue->losses[0].position, 49);
	assert_int_equal(queue->losses[1].position, 2 * SPAN);
}

static void without_queues_there_is_nothing_to_do(void **state)
{
	struct bench *bench = *state;

	add_aux(bench, 10, 0, 1000, 100, PERF_AUX_TRUNCATED);
	assert_int_equal(aux_loss_apply(&bench->data), 0);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(nothing_is_lost_without_a_flag),
		WITH_FIXTURE(each_kind_of_loss_splits_a_span),
		WITH_FIXTURE(losses_are_sorted_by_place),
		WITH_FIXTURE(a_loss_between_spans_splits_none),
		WITH_FIXTURE(losses_before_and_behind_all_trace_split_nothing),
		WITH_FIXTURE(a_loss_in_a_hole_is_behind_what_is_before),
		WITH_FIXTURE(records_of_other_events_and_cpus_say_nothing),
		WITH_FIXTURE(an_unknown_id_may_be_that_of_the_trace),
		WITH_FIXTURE(queues_of_threads_are_found_by_thread),
		WITH_FIXTURE(each_queue_of_many_is_found),
		WITH_FIXTURE(a_record_dates_the_end_of_its_span),
		WITH_FIXTURE(padding_is_no_trace),
		WITH_FIXTURE(the_record_of_a_loss_dates_what_is_before_it),
		WITH_FIXTURE(in_snapshots_offsets_are_the_same),
		WITH_FIXTURE(sizes_that_wrap_do_no_harm),
		WITH_FIXTURE(without_queues_there_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
