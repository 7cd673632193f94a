#include "host/record/trace_loss.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	LOST = 2,
	SAMPLE = 9,
	AUX = 11,
	LOST_SAMPLES = 13,
	SWITCH = 14,
	TRUNCATED = 1,
	OVERWRITE = 2,
	PARTIAL = 4,
	COLLISION = 8,
	ROOM = 1024,
};

struct bench {
	uint8_t data[ROOM];
	size_t size;
	struct trace_loss loss;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	trace_loss_free(&bench->loss);
	return 0;
}

static void put(struct bench *bench, uint64_t value)
{
	memcpy(bench->data + bench->size, &value, sizeof(value));
	bench->size += sizeof(value);
}

/* With up to three fields, of which the last is in front of the trailer. */
static void add(struct bench *bench, uint32_t type, unsigned count, const uint64_t fields[],
		uint32_t tid, uint64_t time)
{
	const uint64_t size = 8 + 8 * count + 32;

	put(bench, size << 48 | type);
	for (unsigned i = 0; i < count; i++)
		put(bench, fields[i]);
	put(bench, (uint64_t)tid << 32 | 1);
	put(bench, time);
	put(bench, 0);
	put(bench, 99);
}

static void add_aux(struct bench *bench, uint64_t offset, uint64_t size, uint64_t flags,
		    uint32_t tid, uint64_t time)
{
	add(bench, AUX, 3, (const uint64_t[]){ offset, size, flags }, tid, time);
}

/* Bytes up to `split` are at the end of the ring. */
static void read_split(struct bench *bench, size_t split)
{
	uint8_t *first = malloc(split ? split : 1), *second = malloc(ROOM);
	const struct ring_bytes bytes = { first, second, split, bench->size - split, 0 };

	assert_true(first && second);
	memcpy(first, bench->data, split);
	memcpy(second, bench->data + split, bench->size - split);
	assert_int_equal(trace_loss_read(&bench->loss, &bytes), 0);
	free(first);
	free(second);
}

static void read_all(struct bench *bench)
{
	read_split(bench, bench->size);
	bench->size = 0;
}

static void a_trace_without_loss_has_none(void **state)
{
	struct bench *bench = *state;

	add_aux(bench, 0, 100, 0, 7, 5);
	add_aux(bench, 100, 50, 0, 8, 6);
	add(bench, SWITCH, 0, NULL, 8, 3);
	read_all(bench);
	assert_int_equal(bench->loss.threads.count, 0);
	assert_int_equal(bench->loss.oldest, 3);
	assert_int_equal(bench->loss.newest, 6);
}

static void what_lies_between_records_of_trace_is_lost(void **state)
{
	struct bench *bench = *state;

	add_aux(bench, 0, 100, TRUNCATED, 7, 5);
	add_aux(bench, 130, 50, PARTIAL | COLLISION, 7, 9);
	read_all(bench);
	assert_int_equal(bench->loss.threads.count, 1);
	assert_int_equal(bench->loss.threads.items[0].tid, 7);
	assert_int_equal(bench->loss.threads.items[0].stops, 1);
	assert_int_equal(bench->loss.threads.items[0].partials, 1);
	assert_int_equal(bench->loss.threads.items[0].bytes, 30);
	assert_int_equal(bench->loss.threads.items[0].first, 5);
	assert_int_equal(bench->loss.threads.items[0].last, 9);
	assert_true(bench->loss.is_untold);
	trace_loss_resumed(&bench->loss, 10);
	assert_false(bench->loss.is_untold);
}

static void snapshots_are_no_stream(void **state)
{
	struct bench *bench = *state;

	add_aux(bench, 4000, 100, OVERWRITE, 7, 5);
	add_aux(bench, 200, 100, OVERWRITE | TRUNCATED, 7, 6);
	read_all(bench);
	assert_int_equal(bench->loss.threads.count, 0);
}

static void records_that_were_dropped_are_counted(void **state)
{
	struct bench *bench = *state;

	add(bench, LOST, 2, (const uint64_t[]){ 99, 12 }, 7, 5);
	add(bench, LOST_SAMPLES, 1, (const uint64_t[]){ 3 }, 7, 6);
	add(bench, LOST, 2, (const uint64_t[]){ 99, 1 }, 8, 6);
	read_all(bench);
	assert_int_equal(bench->loss.threads.count, 2);
	assert_int_equal(bench->loss.threads.items[0].records, 15);
	assert_int_equal(bench->loss.threads.items[1].records, 1);
}

static void records_may_go_around_the_ring_at_any_byte(void **state)
{
	struct bench *bench = *state;
	size_t splits;

	add_aux(bench, 0, 100, 0, 7, 5);
	add(bench, LOST, 2, (const uint64_t[]){ 99, 12 }, 7, 6);
	add_aux(bench, 108, 100, TRUNCATED, 8, 7);
	splits = bench->size;
	for (size_t split = 0; split <= splits; split++) {
		trace_loss_free(&bench->loss);
		read_split(bench, split);
		assert_int_equal(bench->loss.threads.count, 2);
		assert_int_equal(bench->loss.threads.items[0].records, 12);
		assert_int_equal(bench->loss.threads.items[1].bytes, 8);
		assert_int_equal(bench->loss.threads.items[1].first, 7);
		assert_int_equal(bench->loss.stopped_tid, 8);
	}
}

static void samples_have_no_trailer(void **state)
{
	struct bench *bench = *state;

	add(bench, SAMPLE, 2, (const uint64_t[]){ 99, 1 }, 7, 1);
	add(bench, SWITCH, 0, NULL, 8, 3);
	read_all(bench);
	assert_int_equal(bench->loss.oldest, 3);
}

static void nonsense_ends_it(void **state)
{
	static const uint64_t sizes[] = { 0, 7, 2000 };
	struct bench *bench = *state;

	for (size_t i = 0; i < 3; i++) {
		bench->size = 0;
		put(bench, sizes[i] << 48 | LOST);
		add(bench, LOST, 2, (const uint64_t[]){ 99, 12 }, 7, 6);
		read_all(bench);
		assert_int_equal(bench->loss.threads.count, 0);
	}
	/* A LOST record that is too short for its count and trailer. */
	put(bench, (uint64_t)8 << 48 | LOST);
	read_all(bench);
	assert_int_equal(bench->loss.threads.items[0].records, 0);
}

static void time_without_trace_ends_when_it_goes_on(void **state)
{
	struct bench *bench = *state;

	trace_loss_resumed(&bench->loss, 50);
	assert_int_equal(bench->loss.threads.count, 0);
	add_aux(bench, 0, 100, TRUNCATED, 7, 60);
	read_all(bench);
	trace_loss_resumed(&bench->loss, 85);
	trace_loss_resumed(&bench->loss, 99);
	assert_int_equal(bench->loss.threads.items[0].ns, 25);
	add_aux(bench, 100, 100, TRUNCATED, 7, 100);
	read_all(bench);
	/* The clock is not known. */
	trace_loss_resumed(&bench->loss, 0);
	assert_int_equal(bench->loss.threads.items[0].ns, 25);
}

static void losses_add_up_by_thread(void **state)
{
	struct trace_loss sum = { 0 };
	struct bench *bench = *state;

	add_aux(bench, 10, 100, TRUNCATED, 7, 60);
	add_aux(bench, 120, 100, PARTIAL, 8, 70);
	read_all(bench);
	assert_int_equal(trace_loss_add(&sum, &bench->loss), 0);
	assert_int_equal(trace_loss_add(&sum, &bench->loss), 0);
	assert_int_equal(sum.threads.count, 2);
	assert_int_equal(sum.threads.items[0].stops, 2);
	assert_int_equal(sum.threads.items[0].bytes, 20);
	assert_int_equal(sum.threads.items[1].partials, 2);
	assert_int_equal(sum.threads.items[1].first, 70);
	assert_int_equal(sum.oldest, 60);
	assert_int_equal(sum.newest, 70);
	trace_loss_free(&sum);
}

static void what_is_dropped_at_the_end_is_counted(void **state)
{
	struct bench *bench = *state;

	add(bench, LOST, 2, (const uint64_t[]){ 99, 12 }, 7, 6);
	add(bench, LOST_SAMPLES, 1, (const uint64_t[]){ 5 }, 7, 6);
	read_all(bench);
	assert_int_equal(trace_loss_pending(&bench->loss, 12, 8), 0);
	assert_int_equal(bench->loss.threads.count, 1);
	assert_int_equal(trace_loss_pending(&bench->loss, 15, 8), 0);
	assert_int_equal(bench->loss.threads.count, 2);
	assert_int_equal(bench->loss.threads.items[1].tid, 8);
	assert_int_equal(bench->loss.threads.items[1].records, 3);
	assert_int_equal(bench->loss.threads.items[1].first, 0);
	assert_int_equal(trace_loss_pending(&bench->loss, 15, 8), 0);
	assert_int_equal(bench->loss.threads.items[1].records, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_trace_without_loss_has_none),
		TEST(what_lies_between_records_of_trace_is_lost),
		TEST(snapshots_are_no_stream),
		TEST(records_that_were_dropped_are_counted),
		TEST(records_may_go_around_the_ring_at_any_byte),
		TEST(samples_have_no_trailer),
		TEST(nonsense_ends_it),
		TEST(time_without_trace_ends_when_it_goes_on),
		TEST(losses_add_up_by_thread),
		TEST(what_is_dropped_at_the_end_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
