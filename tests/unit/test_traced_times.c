#include "decode/pt/traced_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

/* Ticks are ns. */
static const struct pt_config config = { .tsc = true, .conv = { .valid = true, .mult = 1 } };

/* The trace is in no file. */
static const struct bytes no_mapping;

struct fixture {
	struct pt_bytes bytes;
	struct bench_queue bench;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	bench_queue_free(&fixture->bench);
	pt_bytes_free(&fixture->bytes);
	return 0;
}

/* A thread runs from one time to another. */
static void put_run(struct fixture *fixture, uint64_t from, uint64_t to)
{
	pt_put_psb(&fixture->bytes);
	pt_put_value(&fixture->bytes, PT_TSC, from);
	pt_put_value(&fixture->bytes, PT_PSBEND, 0);
	pt_put_ip(&fixture->bytes, PT_TIP_PGE, 0x401000, 3);
	pt_put_value(&fixture->bytes, PT_TSC, to);
	pt_put_ip(&fixture->bytes, PT_TIP_PGD, 0, 0);
}

/* Two runs: 1000 to 2000, 5000 to 6000. */
static const struct aux_queue *two_runs(struct fixture *fixture)
{
	put_run(fixture, 1000, 2000);
	put_run(fixture, 5000, 6000);
	bench_queue_add(&fixture->bench, fixture->bytes.data, fixture->bytes.size, false);
	return &fixture->bench.queue;
}

static void expect(const struct aux_queue *queue, uint64_t from, uint64_t to,
		   struct traced_times expected)
{
	const struct time_range range = { from, to };
	struct traced_times found = { 0 };

	traced_times_add(queue, &config, &no_mapping, &range, &found);
	assert_int_equal(found.within, expected.within);
	if (expected.within)
		return;
	assert_int_equal(found.before, expected.before);
	assert_int_equal(found.after, expected.after);
}

static void a_pause_lies_between_two_runs(void **state)
{
	const struct aux_queue *queue = two_runs(*state);

	expect(queue, 2001, 4999, (struct traced_times){ false, 2000, 5000 });
	expect(queue, 3000, 3000, (struct traced_times){ false, 2000, 5000 });
}

static void before_and_behind_all_there_is_one_side(void **state)
{
	const struct aux_queue *queue = two_runs(*state);

	expect(queue, 1, 999, (struct traced_times){ false, 0, 1000 });
	expect(queue, 6001, UINT64_MAX, (struct traced_times){ false, 6000, 0 });
}

static void both_ends_of_a_run_belong_to_it(void **state)
{
	static const uint64_t within[][2] = {
		{ 0, 1000 }, { 2000, 2000 }, { 1500, 1600 }, { 3000, 5000 }, { 6000, 7000 },
	};
	const struct aux_queue *queue = two_runs(*state);

	for (size_t i = 0; i < sizeof(within) / sizeof(*within); i++)
		expect(queue, within[i][0], within[i][1], (struct traced_times){ .within = true });
}

/* Without a PSB after it nobody knows since when there is trace again. */
static void behind_a_loss_the_beginning_is_not_known(void **state)
{
	struct fixture *fixture = *state;
	size_t half;

	put_run(fixture, 1000, 2000);
	half = fixture->bytes.size;
	pt_put_value(&fixture->bytes, PT_TSC, 5000);
	bench_queue_add(&fixture->bench, fixture->bytes.data, half, false);
	bench_queue_add(&fixture->bench, fixture->bytes.data + half, fixture->bytes.size - half,
			true);
	expect(&fixture->bench.queue, 3000, 4000, (struct traced_times){ .within = true });
}

static void queues_are_put_together(void **state)
{
	const struct time_range range = { 3000, 4000 };
	struct traced_times found = { .before = 2500, .after = 4500 };

	traced_times_add(two_runs(*state), &config, &no_mapping, &range, &found);
	assert_int_equal(found.before, 2500);
	assert_int_equal(found.after, 4500);
	found = (struct traced_times){ .before = 1500, .after = 5500 };
	traced_times_add(&((struct fixture *)*state)->bench.queue, &config, &no_mapping, &range,
			 &found);
	assert_int_equal(found.before, 2000);
	assert_int_equal(found.after, 5000);
}

static void what_was_read_is_given_back(void **state)
{
	enum { SIZE = 4 << 20, SECOND = 2 << 20 };
	const int kind = MAP_PRIVATE | MAP_ANONYMOUS; /* zeroes once it was given back */
	uint8_t *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, kind, -1, 0);
	const struct bytes mapping = { memory, SIZE };
	struct aux_span span = { .data = memory, .size = SIZE };
	const struct aux_queue queue = { .spans = &span, .count = 1, .size = SIZE };
	const struct time_range range = { 3000, 4000 };
	struct fixture *fixture = *state;
	struct traced_times found = { 0 };

	assert_ptr_not_equal(memory, MAP_FAILED);
	put_run(fixture, 1000, 2000);
	memcpy(memory, fixture->bytes.data, fixture->bytes.size);
	fixture->bytes.size = 0;
	put_run(fixture, 5000, 6000);
	memcpy(memory + SECOND, fixture->bytes.data, fixture->bytes.size);
	traced_times_add(&queue, &config, &mapping, &range, &found);
	assert_int_equal(found.before, 2000);
	assert_int_equal(found.after, 5000);
	assert_int_equal(memory[0], 0);
	(void)munmap(memory, SIZE);
}

static void an_empty_queue_says_nothing(void **state)
{
	const struct aux_queue queue = { 0 };

	expect(&queue, 1, 2, (struct traced_times){ false, 0, 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pause_lies_between_two_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(before_and_behind_all_there_is_one_side, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(both_ends_of_a_run_belong_to_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(behind_a_loss_the_beginning_is_not_known, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(queues_are_put_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_read_is_given_back, set_up, tear_down),
		cmocka_unit_test(an_empty_queue_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
