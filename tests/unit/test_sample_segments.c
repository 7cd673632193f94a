#include "decode/flow/sample_segments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

enum { QUEUES = 2 };

struct fixture {
	struct pt_config config;
	struct pt_bytes traces[QUEUES];
	struct bench_queue queues[QUEUES];
	struct trace_sources sources;
	struct sample_segments segments;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	fixture.sources = (struct trace_sources){ .config = &fixture.config };
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	sample_segments_free(&fixture->segments);
	trace_sources_free(&fixture->sources);
	for (unsigned i = 0; i < QUEUES; i++) {
		bench_queue_free(&fixture->queues[i]);
		pt_bytes_free(&fixture->traces[i]);
	}
	return 0;
}

/* A queue of PSBs that are so many bytes apart, and other packets between. */
static void add_queue(struct fixture *fixture, unsigned number, size_t psbs, size_t apart)
{
	struct pt_bytes *trace = &fixture->traces[number];

	for (size_t i = 0; i < psbs; i++) {
		size_t end = trace->size + apart;

		pt_put_psb(trace);
		pt_put_value(trace, PT_PSBEND, 0);
		while (trace->size < end)
			pt_put_value(trace, PT_TSC, i);
		trace->size = end;
	}
	bench_queue_add(&fixture->queues[number], trace->data, trace->size, false);
	assert_int_equal(trace_sources_add(&fixture->sources, &fixture->queues[number].queue,
					   &(struct flow_code){ .pid = 0 }),
			 0);
}

/* Read, and see that they are in order and do not overlap. Returns how many bytes they have. */
static uint64_t read_all(struct fixture *fixture, uint64_t most)
{
	struct sample_segments *segments = &fixture->segments;
	uint64_t size = 0;

	assert_int_equal(sample_segments_read(&fixture->sources, most, segments), 0);
	for (size_t i = 0; i < segments->count; i++) {
		const struct sample_segment *item = &segments->items[i];

		assert_true(item->segment.to > item->segment.from);
		assert_ptr_equal(item->segment.queue, &fixture->queues[item->source].queue);
		size += item->segment.to - item->segment.from;
		if (!i || item[-1].source < item->source)
			continue;
		assert_int_equal(item[-1].source, item->source);
		assert_true(item[-1].segment.to <= item->segment.from);
	}
	return size;
}

static void of_little_trace_all_is_taken(void **state)
{
	enum { PSBS = 20, APART = SAMPLE_BYTES / 4 };
	struct fixture *fixture = *state;

	add_queue(fixture, 0, PSBS, APART);
	add_queue(fixture, 1, PSBS, APART);
	assert_int_equal(read_all(fixture, 2 * PSBS * APART), 2 * PSBS * APART);
	assert_true(fixture->segments.count < PSBS);
}

static void of_much_trace_parts_all_over_it_are_taken(void **state)
{
	enum { PARTS = 10, PSBS = 400, APART = SAMPLE_BYTES / 4 };
	struct fixture *fixture = *state;
	size_t of_first = 0;

	add_queue(fixture, 0, PSBS, APART);
	add_queue(fixture, 1, PSBS, APART);
	assert_int_equal(read_all(fixture, PARTS * SAMPLE_BYTES), PARTS * SAMPLE_BYTES);
	assert_int_equal(fixture->segments.count, PARTS);
	for (unsigned i = 0; i < PARTS; i++)
		of_first += !fixture->segments.items[i].source;
	assert_int_equal(of_first, PARTS / 2);
	assert_true(fixture->segments.items[0].segment.from < PSBS * APART / PARTS * 2);
	assert_true(fixture->segments.items[PARTS - 1].segment.from >
		    PSBS * APART - PSBS * APART / PARTS * 2);
}

/* A part may lie between two PSBs, and so may several. */
static void where_psbs_are_far_apart_parts_are_not_long(void **state)
{
	enum { PARTS = 8, PSBS = 3, APART = 40 * SAMPLE_BYTES, PART_MOST = 4 * SAMPLE_BYTES };
	struct fixture *fixture = *state;
	uint64_t size;

	add_queue(fixture, 0, PSBS, APART);
	size = read_all(fixture, PARTS * SAMPLE_BYTES);
	assert_in_range(size, 2 * PART_MOST, 2 * PART_MOST + SAMPLE_BYTES);
	assert_int_equal(fixture->segments.count, 2);
	assert_int_equal(fixture->segments.items[0].segment.from, APART);
	assert_int_equal(fixture->segments.items[1].segment.from, 2 * APART);
}

static void without_trace_there_is_no_segment(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(read_all(fixture, SAMPLE_BYTES), 0);
	assert_int_equal(fixture->segments.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_little_trace_all_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_much_trace_parts_all_over_it_are_taken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_psbs_are_far_apart_parts_are_not_long, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_trace_there_is_no_segment, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
