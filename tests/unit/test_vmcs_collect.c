#include "correlate/vmcs_collect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* Many queues, walked by threads; what one of them tells is in test_vmcs_seen.c. */

enum { QUEUES = 40, TICK = 80, ROUNDS = 20 };

static const uint64_t noon = 1000000000000, offset = 12345678;

/* Host and guest in turn. */
static void put_rounds(struct pt_bytes *trace, uint64_t vmcs, unsigned rounds)
{
	for (unsigned i = 0; i < 2 * rounds; i++) {
		const bool nr = i % 2;

		pt_put_psb_plus(trace, &(struct pt_psb_plus){ .nr = nr,
							      .vmcs = vmcs,
							      .tsc = noon + (uint64_t)i * TICK +
								     (nr ? offset : 0),
							      .ctc = (uint16_t)i });
	}
}

struct asked {
	unsigned times;
	double last;
};

static bool go_on(void *context, double done)
{
	struct asked *asked = context;

	assert_true(done >= asked->last && done <= 1);
	asked->last = done;
	asked->times++;
	return true;
}

static bool stop(void *context, double done)
{
	return false;
}

static void all_queues_are_walked_whatever_their_size(void **state)
{
	struct bench_queue benches[QUEUES] = { 0 };
	struct pt_bytes traces[QUEUES] = { 0 };
	struct aux_queue queues[QUEUES];
	struct asked asked = { 0 };
	const struct watch watch = { go_on, &asked };
	struct vmcs_table table = { 0 };
	uint64_t packets = 0, observed = 0;

	for (unsigned i = 0; i < QUEUES; i++) {
		const unsigned rounds = i * 7 % QUEUES; /* one has none */

		put_rounds(&traces[i], i % 3, rounds);
		bench_queue_add(&benches[i], traces[i].data, traces[i].size, false);
		queues[i] = benches[i].queue;
		packets += 2 * rounds;
	}
	assert_int_equal(
		vmcs_collect(queues, QUEUES, &bench_skylake_x, (struct bytes){ 0 }, &watch, &table),
		0);
	assert_int_equal(table.packets, packets);
	assert_int_equal(table.seen.count, 3);
	for (size_t i = 0; i < table.seen.count; i++)
		for (size_t k = 0; k < table.seen.items[i].runs.count; k++) {
			assert_int_equal(tsc_run_offset(&table.seen.items[i].runs.items[k]),
					 offset);
			observed += table.seen.items[i].runs.items[k].count;
		}
	assert_int_equal(observed, packets / 2);
	vmcs_table_free(&table);
	for (unsigned i = 0; i < QUEUES; i++) {
		bench_queue_free(&benches[i]);
		pt_bytes_free(&traces[i]);
	}
}

static void each_run_knows_its_queue(void **state)
{
	struct bench_queue empty = { 0 }, bench = { 0 };
	struct pt_bytes trace = { 0 };
	struct asked asked = { 0 };
	const struct watch watch = { go_on, &asked };
	struct vmcs_table table = { 0 };
	struct aux_queue queues[3];

	put_rounds(&trace, 1, ROUNDS);
	bench_queue_add(&bench, trace.data, trace.size, false);
	queues[0] = queues[1] = empty.queue;
	queues[2] = bench.queue;
	assert_int_equal(
		vmcs_collect(queues, 3, &bench_skylake_x, (struct bytes){ 0 }, &watch, &table), 0);
	assert_int_equal(table.seen.items[0].queue, 2);
	assert_int_equal(table.seen.items[0].runs.items[0].queue, 2);
	vmcs_table_free(&table);
	bench_queue_free(&bench);
	pt_bytes_free(&trace);
}

static void no_queues_tell_nothing(void **state)
{
	const struct watch watch = { stop, NULL };
	struct vmcs_table table = { 0 };

	assert_int_equal(
		vmcs_collect(NULL, 0, &bench_skylake_x, (struct bytes){ 0 }, &watch, &table), 0);
	assert_int_equal(table.packets, 0);
	assert_int_equal(table.seen.count, 0);
}

/* The same bytes over and over: many gigabytes, which nobody walks in no time. */
static void long_work_is_watched_and_can_be_stopped(void **state)
{
	enum { SPANS = 1 << 14 };
	const struct watch watch = { stop, NULL };
	struct vmcs_table table = { 0 };
	struct bench_queue bench = { 0 };
	struct pt_bytes trace = { 0 };

	for (unsigned i = 0; i < 1000; i++)
		put_rounds(&trace, 1, ROUNDS);
	for (unsigned i = 0; i < SPANS; i++)
		bench_queue_add(&bench, trace.data, trace.size, true);
	assert_int_equal(vmcs_collect(&bench.queue, 1, &bench_skylake_x, (struct bytes){ 0 },
				      &watch, &table),
			 -PTVM_END);
	vmcs_table_free(&table);
	bench_queue_free(&bench);
	pt_bytes_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_queues_are_walked_whatever_their_size),
		cmocka_unit_test(each_run_knows_its_queue),
		cmocka_unit_test(no_queues_tell_nothing),
		cmocka_unit_test(long_work_is_watched_and_can_be_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
