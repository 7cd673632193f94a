#include "decode/flow/sample_survey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/sample_bench.h"

enum { SEEDS = 10, COPIES = 40, MOST_OTHERS = 64 };

/* The segments before some are left out: which of them are at odds. */
struct before {
	bool *at_odds;
	size_t count, odds;
	uint64_t bytes;
};

/* Simulations are short: the same again and again, so that there are more segments than needed.
 * They are numbered by `until`, which runs set later. */
static void repeat(struct sample_segments *segments)
{
	const size_t count = segments->count;

	for (segments->count = 0; segments->count < COPIES * count; segments->count++) {
		segments->items[segments->count] = segments->items[segments->count % count];
		segments->items[segments->count].until = segments->count;
	}
}

static struct before look(struct sample_run *run)
{
	struct before ret = { .count = run->segments.count };

	ret.at_odds = calloc(ret.count, sizeof(*ret.at_odds));
	assert_non_null(ret.at_odds);
	for (size_t i = 0; i < ret.count; i++) {
		const struct pt_segment *segment = &run->segments.items[i].segment;

		ret.at_odds[i] = sample_run_disagrees(run, i, false);
		ret.odds += ret.at_odds[i];
		ret.bytes += segment->to - segment->from;
	}
	return ret;
}

static bool is_at_border(const struct before *before, size_t i)
{
	return (i && before->at_odds[i - 1] != before->at_odds[i]) ||
	       (i + 1 < before->count && before->at_odds[i + 1] != before->at_odds[i]);
}

/* Kept are some of them in their order, among them all at borders. Returns how many of the others
 * that are not at odds. */
static size_t compare(const struct before *before, const struct sample_segments *after)
{
	size_t kept = 0, others = 0;

	for (size_t i = 0; i < before->count; i++) {
		bool is_kept = kept < after->count && after->items[kept].until == i;

		assert_true(is_kept || !is_at_border(before, i));
		others += is_kept && !before->at_odds[i] && !is_at_border(before, i);
		kept += is_kept;
	}
	assert_int_equal(kept, after->count);
	return others;
}

static void borders_are_kept_and_some_of_the_others(void **state)
{
	size_t left_out = 0, odds = 0, most = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sample_bench *bench = calloc(1, sizeof(*bench));
		struct before before;
		uint64_t bytes;
		size_t others;

		assert_non_null(bench);
		sample_bench_make(bench, seed, true);
		repeat(&bench->run.segments);
		before = look(&bench->run);
		if (sample_survey_thin_out(&bench->run, &bytes)) {
			others = compare(&before, &bench->run.segments);
			assert_in_range(others, 0, MOST_OTHERS);
			most = others > most ? others : most;
			left_out += before.count - bench->run.segments.count;
			odds += before.odds;
		} else {
			assert_int_equal(before.odds, 0);
		}
		assert_int_equal(bytes, before.bytes);
		free(before.at_odds);
		sample_bench_free(bench);
		free(bench);
	}
	assert_true(odds > 0 && left_out > 0 && most > MOST_OTHERS / 2);
}

static void code_that_is_right_has_nothing_to_tell(void **state)
{
	struct sample_bench *bench = calloc(1, sizeof(*bench));
	uint64_t bytes;

	assert_non_null(bench);
	sample_bench_make(bench, 1, false);
	assert_false(sample_survey_thin_out(&bench->run, &bytes));
	assert_true(bytes > 0);
	sample_bench_free(bench);
	free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borders_are_kept_and_some_of_the_others),
		cmocka_unit_test(code_that_is_right_has_nothing_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
