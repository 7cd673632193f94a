#include "decode/perf/sample_queues.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { QUEUES = 4, RECORDS = 64, NO_CPU = -1 };

struct fixture {
	struct perf_data data;
	struct perf_record records[RECORDS];
	struct aux_queue queues[QUEUES];
	struct sideband *sideband;
	struct sample_queues samples;
};

static struct perf_record *add(struct fixture *f, uint16_t type, uint64_t time, int32_t tid,
			       int32_t cpu)
{
	struct perf_record *record = &f->records[f->data.records.count++];

	*record = (struct perf_record){
		.type = type, .time = time, .pid = 1, .tid = tid, .cpu = cpu
	};
	return record;
}

/* A thread gets a CPU. */
static void comes_in(struct fixture *f, uint64_t time, int32_t tid, int32_t cpu)
{
	static const uint8_t header[16] = { 0 };
	struct perf_record *record = add(f, PERF_SWITCH_CPU_WIDE, time, tid, cpu);

	record->data = header;
	record->size = sizeof(header);
}

/* Queues of CPUs 0 to 3. */
static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	f->data.records.items = f->records;
	for (int32_t i = 0; i < QUEUES; i++)
		f->queues[i] = (struct aux_queue){ .cpu = i, .tid = -1, .pid = -1 };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	sample_queues_free(&f->samples);
	sideband_free(f->sideband);
	test_free(f);
	return 0;
}

static void build(struct fixture *f)
{
	assert_int_equal(sideband_build(&f->data, &f->sideband), 0);
	assert_int_equal(sample_queues_build(&f->data, f->sideband, f->queues, QUEUES, &f->samples),
			 0);
}

/* The queue has the samples at these times, and no others; 0 ends. */
static void assert_times(const struct fixture *f, int queue, const uint64_t *times)
{
	const struct sample_list *list = sample_queues_of(&f->samples, &f->queues[queue]);

	for (size_t i = 0; i < list->count; i++, times++)
		assert_int_equal(f->records[list->items[i]].time, *times);
	assert_int_equal(*times, 0);
}

#define ASSERT_TIMES(f, queue, ...) assert_times(f, queue, (const uint64_t[]){ __VA_ARGS__ })

static void samples_go_with_their_cpu(void **state)
{
	struct fixture *f = *state;

	f->queues[0].cpu = 9; /* in no order */
	add(f, PERF_SAMPLE, 10, 7, 1);
	add(f, PERF_SAMPLE, 20, 7, 9);
	add(f, PERF_COMM, 25, 7, 1);
	add(f, PERF_SAMPLE, 30, 8, 1);
	add(f, PERF_SAMPLE, 40, 8, 0); /* not traced */
	add(f, PERF_SAMPLE, 50, 8, 1)->machine_pid = 5;
	build(f);
	ASSERT_TIMES(f, 0, 20, 0);
	ASSERT_TIMES(f, 1, 10, 30, 0);
	ASSERT_TIMES(f, 2, 0);
}

static void samples_go_with_their_thread(void **state)
{
	struct fixture *f = *state;

	for (int32_t i = 0; i < QUEUES; i++)
		f->queues[i] = (struct aux_queue){ .cpu = -1, .tid = 9 - i, .pid = 1 };
	add(f, PERF_SAMPLE, 10, 7, 1);
	add(f, PERF_SAMPLE, 20, 9, NO_CPU);
	add(f, PERF_SAMPLE, 30, 1, NO_CPU);
	build(f);
	ASSERT_TIMES(f, 0, 20, 0);
	ASSERT_TIMES(f, 1, 0);
	ASSERT_TIMES(f, 2, 10, 0);
}

static void without_a_cpu_it_is_the_last_one_of_the_thread(void **state)
{
	struct fixture *f = *state;

	add(f, PERF_SAMPLE, 5, 7, NO_CPU); /* it is not known where that was */
	comes_in(f, 10, 7, 1);
	add(f, PERF_SAMPLE, 15, 7, NO_CPU);
	comes_in(f, 20, 0, 1);
	add(f, PERF_SAMPLE, 25, 7, NO_CPU);
	add(f, PERF_SAMPLE, 26, 0, NO_CPU); /* any of them may be idle */
	comes_in(f, 30, 7, 3);
	comes_in(f, 30, 8, 1);
	add(f, PERF_SAMPLE, 35, 7, NO_CPU);
	add(f, PERF_SAMPLE, 36, 8, NO_CPU);
	build(f);
	ASSERT_TIMES(f, 0, 0);
	ASSERT_TIMES(f, 1, 15, 25, 36, 0);
	ASSERT_TIMES(f, 3, 35, 0);
}

static void numbers_that_cannot_be_are_nobodys(void **state)
{
	static const int32_t tids[] = { INT32_MIN, -1, 1 << 22, INT32_MAX };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(tids) / sizeof(*tids); i++) {
		comes_in(f, 10 + i, tids[i], 1);
		add(f, PERF_SAMPLE, 20 + i, tids[i], NO_CPU);
		add(f, PERF_SAMPLE, 30 + i, tids[i], tids[i]);
	}
	build(f);
	for (int i = 0; i < QUEUES; i++)
		ASSERT_TIMES(f, i, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_go_with_their_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(samples_go_with_their_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_cpu_it_is_the_last_one_of_the_thread,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers_that_cannot_be_are_nobodys, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
