#include "decode/flow/trace_sample.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

enum { QUEUES = 3, MOST = 64 };

/* Queues of so many parts each. */
struct fixture {
	struct aux_queue queues[QUEUES];
	struct trace_sources sources;
	struct trace_sample sample;
	struct sample_part chosen[MOST];
};

static void begin(struct fixture *fixture, const uint64_t parts[QUEUES])
{
	static const struct pt_config config = { .tsc = true };

	*fixture = (struct fixture){ .sample = { .sources = &fixture->sources } };
	fixture->sources = (struct trace_sources){ .config = &config };
	for (unsigned i = 0; i < QUEUES; i++) {
		fixture->queues[i].size = parts[i] * SAMPLE_BYTES;
		assert_int_equal(trace_sources_add(&fixture->sources, &fixture->queues[i],
						   &(struct flow_code){ .pid = 0 }),
				 0);
	}
}

static void end(struct fixture *fixture)
{
	trace_sample_free(&fixture->sample);
	trace_sources_free(&fixture->sources);
}

static void see(struct fixture *fixture, size_t queue, uint64_t number, uint64_t from_ns,
		uint64_t to_ns)
{
	const struct sample_seen seen = { { queue, number }, from_ns, to_ns };

	assert_false(trace_sample_has(&fixture->sample, &seen.part));
	assert_true(trace_sample_add(&fixture->sample, &seen));
	assert_true(trace_sample_has(&fixture->sample, &seen.part));
}

static size_t choose(struct fixture *fixture, uint64_t from_ns, uint64_t to_ns, size_t most)
{
	const struct sample_times times = { from_ns, to_ns };

	return trace_sample_choose(&fixture->sample, &times, most, fixture->chosen);
}

static void assert_chosen(const struct fixture *fixture, size_t i, size_t queue, uint64_t number)
{
	assert_int_equal(fixture->chosen[i].queue, queue);
	assert_int_equal(fixture->chosen[i].number, number);
}

static void the_end_of_a_queue_is_a_part(void **state)
{
	assert_int_equal(trace_sample_parts(&(struct aux_queue){ .size = 0 }), 0);
	assert_int_equal(trace_sample_parts(&(struct aux_queue){ .size = 1 }), 1);
	assert_int_equal(trace_sample_parts(&(struct aux_queue){ .size = SAMPLE_BYTES }), 1);
	assert_int_equal(trace_sample_parts(&(struct aux_queue){ .size = SAMPLE_BYTES + 1 }), 2);
}

static void parts_are_spread_over_all_queues(void **state)
{
	static struct fixture fixture;

	begin(&fixture, (uint64_t[]){ 100, 0, 300 });
	assert_int_equal(choose(&fixture, 0, UINT64_MAX, 4), 4);
	assert_chosen(&fixture, 0, 0, 50);
	assert_chosen(&fixture, 1, 2, 50);
	assert_chosen(&fixture, 2, 2, 150);
	assert_chosen(&fixture, 3, 2, 250);
	end(&fixture);
}

static void what_was_seen_is_not_chosen_again(void **state)
{
	static struct fixture fixture;

	begin(&fixture, (uint64_t[]){ 3, 1, 2 });
	see(&fixture, 2, 1, 0, UINT64_MAX);
	see(&fixture, 0, 1, 0, UINT64_MAX);
	assert_int_equal(choose(&fixture, 0, UINT64_MAX, MOST), 4);
	assert_chosen(&fixture, 0, 0, 0);
	assert_chosen(&fixture, 1, 0, 2);
	assert_chosen(&fixture, 2, 1, 0);
	assert_chosen(&fixture, 3, 2, 0);
	for (unsigned i = 0; i < 4; i++)
		see(&fixture, fixture.chosen[i].queue, fixture.chosen[i].number, 1, 2);
	assert_int_equal(choose(&fixture, 0, UINT64_MAX, MOST), 0);
	end(&fixture);
}

static void only_parts_of_the_wanted_times_are_chosen(void **state)
{
	static struct fixture fixture;
	size_t count;

	begin(&fixture, (uint64_t[]){ 100, 10, 0 });
	see(&fixture, 0, 10, 100, 110);
	see(&fixture, 0, 20, 200, 210);
	see(&fixture, 0, 23, 230, 240);
	see(&fixture, 0, 30, 300, 310);
	see(&fixture, 1, 2, 290, 300);
	assert_int_equal(choose(&fixture, 205, 235, MOST), 4);
	assert_chosen(&fixture, 0, 0, 21);
	assert_chosen(&fixture, 1, 0, 22);
	assert_chosen(&fixture, 2, 1, 0);
	assert_chosen(&fixture, 3, 1, 1);
	count = choose(&fixture, 305, UINT64_MAX, 8);
	assert_in_range(count, 6, 8);
	for (size_t i = 0; i < count; i++)
		assert_true(fixture.chosen[i].number > (fixture.chosen[i].queue ? 2 : 30) &&
			    (!i || fixture.chosen[i].queue > fixture.chosen[i - 1].queue ||
			     fixture.chosen[i].number > fixture.chosen[i - 1].number));
	end(&fixture);
}

static void a_part_of_unknown_time_is_no_border(void **state)
{
	static struct fixture fixture;

	begin(&fixture, (uint64_t[]){ 10, 0, 0 });
	see(&fixture, 0, 2, 0, UINT64_MAX);
	see(&fixture, 0, 7, 0, UINT64_MAX);
	assert_int_equal(choose(&fixture, 100, 200, MOST), 8);
	end(&fixture);
}

static void half_of_the_parts_are_next_to_what_happened(void **state)
{
	static struct fixture fixture;

	begin(&fixture, (uint64_t[]){ 1000, 0, 0 });
	see(&fixture, 0, 100, 100, 110);
	see(&fixture, 0, 900, 900, 910);
	assert_int_equal(choose(&fixture, 105, 905, 8), 8);
	assert_chosen(&fixture, 0, 0, 101);
	assert_chosen(&fixture, 1, 0, 102);
	assert_chosen(&fixture, 6, 0, 898);
	assert_chosen(&fixture, 7, 0, 899);
	assert_int_equal(choose(&fixture, 105, UINT64_MAX, 8), 8);
	assert_chosen(&fixture, 1, 0, 102);
	assert_true(fixture.chosen[7].number < 999);
	end(&fixture);
}

/* How far before a PSB of a guest, whose time is not known, a walk begins that enters there. There
 * are PSBs all over the trace; those that are so far before it, 0 none, are the host's. */
static uint64_t lead_of(size_t near, size_t far)
{
	enum { APART = 5000, AT = 80 * APART };
	const struct pt_config config = { .tsc = true };
	struct trace_sources sources = { .config = &config };
	struct pt_bytes trace = { 0 };
	struct bench_queue queue = { 0 };
	struct pt_walk walk;

	for (size_t at = 0; at <= AT; at += APART) {
		const bool is_host = AT - at && (AT - at == near || AT - at == far);
		const struct pt_psb_plus psb = { .nr = !is_host, .vmcs = 0x5000, .tsc = 1000 };

		while (trace.size < at)
			pt_put_value(&trace, PT_PAD, 0);
		pt_put_psb_plus(&trace, &psb);
	}
	bench_queue_add(&queue, trace.data, trace.size, false);
	assert_int_equal(trace_sources_add(&sources, &queue.queue, &(struct flow_code){ .pid = 0 }),
			 0);
	trace_sample_enter(&sources, &queue.queue, AT, &walk);
	trace_sources_free(&sources);
	bench_queue_free(&queue);
	pt_bytes_free(&trace);
	return AT - walk.segment.from;
}

static void time_begins_at_the_last_psb_of_the_host(void **state)
{
	assert_int_equal(lead_of(5000, 0), 5000);
	assert_int_equal(lead_of(5000, 10000), 5000);
	assert_int_equal(lead_of(100000, 200000), 100000);
	assert_int_equal(lead_of(260000, 0), 260000);
	assert_int_equal(lead_of(265000, 0), 0); /* too far */
	assert_int_equal(lead_of(0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_queue_is_a_part),
		cmocka_unit_test(parts_are_spread_over_all_queues),
		cmocka_unit_test(what_was_seen_is_not_chosen_again),
		cmocka_unit_test(only_parts_of_the_wanted_times_are_chosen),
		cmocka_unit_test(a_part_of_unknown_time_is_no_border),
		cmocka_unit_test(half_of_the_parts_are_next_to_what_happened),
		cmocka_unit_test(time_begins_at_the_last_psb_of_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
