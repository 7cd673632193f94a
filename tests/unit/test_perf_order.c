#include "decode/perf/perf_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/base/spool.h"
#include "tests/sim_random.h"

enum { RECORDS = 500, TRIALS = 200 };

/* Sorted, and of the same time as they came: `file_offset` is the number they had. */
static void assert_in_order(const struct perf_record *records, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		assert_true(records[i].time >= records[i - 1].time);
		if (records[i].time == records[i - 1].time)
			assert_true(records[i].file_offset > records[i - 1].file_offset);
	}
}

static void records_of_any_order_are_sorted_stably(void **state)
{
	struct sim_random random = { 1 };

	for (unsigned trial = 0; trial < TRIALS; trial++) {
		struct perf_record records[RECORDS];
		size_t count = sim_random_below(&random, RECORDS);
		unsigned range = 1 + sim_random_below(&random, RECORDS);
		uint64_t sum = 0;

		for (size_t i = 0; i < count; i++) {
			records[i] = (struct perf_record){ .file_offset = i };
			records[i].time = sim_random_below(&random, range);
		}
		assert_int_equal(perf_order(&(struct perf_records){ records, count, RECORDS }), 0);
		assert_in_order(records, count);
		for (size_t i = 0; i < count; i++)
			sum += records[i].file_offset;
		assert_int_equal(sum, count * (count - !!count) / 2); /* each is there once */
	}
}

static void what_rings_wrote_one_after_the_other_is_merged(void **state)
{
	struct perf_record records[RECORDS];

	for (size_t i = 0; i < RECORDS; i++)
		records[i] = (struct perf_record){ .file_offset = i, .time = 10 + i % 100 };
	assert_int_equal(perf_order(&(struct perf_records){ records, RECORDS, RECORDS }), 0);
	assert_in_order(records, RECORDS);
	assert_int_equal(records[0].file_offset, 0);
	assert_int_equal(records[1].file_offset, 100);
	assert_int_equal(records[RECORDS - 1].file_offset, RECORDS - 1);
}

/* So many that they lie in a file, from where pages come again. */
static void very_many_records_are_sorted_as_well(void **state)
{
	enum { MANY = 600000 };
	struct perf_records records = { 0 };
	struct sim_random random = { 1 };

	for (size_t i = 0; i < MANY; i++) {
		const struct perf_record record = {
			.file_offset = i, .time = i / 1000 * 1000 + sim_random_below(&random, 5000)
		};

		assert_true(spool_push(&records, record));
	}
	assert_int_equal(perf_order(&records), 0);
	assert_in_order(records.items, MANY);
	spool_vec_free(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_any_order_are_sorted_stably),
		cmocka_unit_test(what_rings_wrote_one_after_the_other_is_merged),
		cmocka_unit_test(very_many_records_are_sorted_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
