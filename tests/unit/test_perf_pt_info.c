#include "decode/perf/perf_pt_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PMU = 8, WORDS = 64, ALL = 17 };

/* Words of AUXTRACE_INFO, in perf's order, behind its type. */
enum {
	PMU_TYPE,
	TIME_SHIFT,
	TIME_MULT,
	TIME_ZERO,
	CAP_TIME_ZERO,
	TSC_BIT,
	NORETCOMP_BIT,
	HAVE_SCHED_SWITCH,
	SNAPSHOT,
	PER_CPU,
	MTC_BIT,
	MTC_PERIOD_BITS,
	CTC_N,
	CTC_D,
	CYC_BIT,
	MAX_NONTURBO,
	FILTER_LENGTH,
	FILTER,
};

/* A recording with one PT event of all kinds of packets, and what perf says of it. */
struct bench {
	struct perf_data data;
	struct perf_event events[3];
	struct {
		uint64_t type, words[WORDS];
	} info;
	size_t count; /* of words */
	uint8_t *exact;
};

static int set_up(void **state)
{
	static const uint64_t words[] = { PMU, 31,    1 << 30, 1000, 1, 0x400, 0x800, 3, 0,
					  1,   0x200, 0x3c000, 160,  2, 2,     0,     0, 0 };
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->info.type = 1;
	memcpy(bench->info.words, words, sizeof(words));
	bench->count = ALL;
	for (size_t i = 0; i < 3; i++)
		bench->events[i].name = "";
	bench->events[0].sample_type = PERF_SAMPLE_TIME;
	bench->events[0].type = PMU;
	bench->events[0].config = 0x300e603 | 0x800;
	bench->data.events.items = bench->events;
	bench->data.events.count = 1;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	free(bench->exact);
	free(bench);
	return 0;
}

static const struct pt_config *read_info(struct bench *bench)
{
	const size_t size = 8 + 8 * bench->count;

	free(bench->exact);
	bench->exact = malloc(size);
	assert_non_null(bench->exact);
	memcpy(bench->exact, &bench->info, size);
	bench->data.auxtrace_info = (struct bytes){ bench->exact, size };
	bench->data.pt = (struct pt_config){ 0 };
	bench->data.is_timeless = false;
	perf_pt_info_read(&bench->data);
	return &bench->data.pt;
}

static void the_words_tell_how_the_trace_was_made(void **state)
{
	struct bench *bench = *state;
	const struct pt_config *pt = read_info(bench);

	assert_true(bench->data.have_pt);
	assert_false(bench->data.is_timeless);
	assert_true(pt->tsc && pt->cyc && pt->mtc && pt->noretcomp && pt->per_cpu);
	assert_false(pt->snapshot || pt->have_event_trace);
	assert_int_equal(pt->mtc_shift, 3);
	assert_int_equal(pt->have_sched_switch, 3);
	assert_int_equal(pt->ctc_n, 160);
	assert_int_equal(pt->ctc_d, 2);
	assert_true(pt->conv.valid);
	assert_int_equal(pt->conv.shift, 31);
	assert_int_equal(pt->conv.mult, 1 << 30);
	assert_int_equal(pt->conv.zero, 1000);
	assert_int_equal(pt->nominal_hz, 2000000000);
	assert_int_equal(pt->max_nonturbo, 20); /* estimated of that */
	assert_string_equal(pt->filter, "");
	assert_true(bench->events[0].is_pt);
	assert_string_equal(bench->events[0].name, "intel_pt");
}

static void how_switches_were_recorded_takes_two_bits(void **state)
{
	struct bench *bench = *state;

	for (uint64_t have = 0; have < 4; have++) {
		bench->info.words[HAVE_SCHED_SWITCH] = have;
		assert_int_equal(read_info(bench)->have_sched_switch, have);
	}
}

static void packets_are_on_when_their_bit_is_in_the_config(void **state)
{
	struct bench *bench = *state;
	const struct pt_config *pt;

	bench->events[0].config = 0x400;
	pt = read_info(bench);
	assert_true(pt->tsc);
	assert_false(pt->cyc || pt->mtc || pt->noretcomp);
	bench->events[0].config = ~(uint64_t)0x400;
	pt = read_info(bench);
	assert_false(pt->tsc);
	assert_true(pt->cyc && pt->mtc && pt->noretcomp);
	assert_true(bench->data.is_timeless);
}

static void branches_are_off_when_the_config_says_so(void **state)
{
	struct bench *bench = *state;
	const struct pt_config *pt = read_info(bench);

	assert_false(pt->no_branches || pt->no_tnt);
	bench->events[0].config = 0x401 | (uint64_t)1 << 55;
	pt = read_info(bench);
	assert_true(pt->no_branches && pt->no_tnt);
	bench->events[0].config = 0x400; /* by a kernel without the term `pt` */
	assert_false(read_info(bench)->no_branches);
}

static void a_threshold_of_cycles_is_a_power_of_two(void **state)
{
	struct bench *bench = *state;

	for (uint64_t i = 0; i < 16; i++) {
		bench->events[0].config = 0x2403 | i << 19;
		assert_int_equal(read_info(bench)->cyc_least, i ? 1 << (i - 1) : 0);
	}
}

static void other_traces_are_not_read(void **state)
{
	struct bench *bench = *state;

	bench->info.type = 2; /* BTS */
	(void)read_info(bench);
	assert_false(bench->data.have_pt || bench->data.is_timeless || bench->events[0].is_pt);
	assert_int_equal(bench->data.pt.nominal_hz, 0);
	bench->data.auxtrace_info = (struct bytes){ NULL, 0 };
	bench->data.have_pt = true;
	perf_pt_info_read(&bench->data);
	assert_false(bench->data.have_pt);
}

/* The least that perf takes. */
static void what_old_perf_did_not_write_is_unknown(void **state)
{
	struct bench *bench = *state;
	const struct pt_config *pt;

	bench->count = PER_CPU + 1;
	pt = read_info(bench);
	assert_true(pt->tsc && pt->per_cpu && pt->conv.valid);
	assert_false(pt->mtc || pt->cyc);
	assert_int_equal(pt->ctc_n | pt->ctc_d | pt->mtc_shift, 0);
	assert_int_equal(pt->max_nonturbo, 20);
}

static void an_info_cut_anywhere_does_no_harm(void **state)
{
	struct bench *bench = *state;

	for (bench->count = 0; bench->count < WORDS; bench->count++) {
		memset(&bench->info.words[FILTER], 'x', 8 * (WORDS - FILTER));
		bench->info.words[FILTER_LENGTH] = 8 * (WORDS - FILTER);
		assert_true(strlen(read_info(bench)->filter) <= 8 * WORDS);
	}
}

static void impossible_clocks_are_none(void **state)
{
	static const struct {
		uint64_t shift, mult;
		bool is_possible;
	} cases[] = { { 63, 1, true },  { 64, 1, false },         { UINT64_MAX, 1, false },
		      { 31, 0, false }, { 31, UINT32_MAX, true }, { 31, 1ull << 32, false } };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bench->info.words[TIME_SHIFT] = cases[i].shift;
		bench->info.words[TIME_MULT] = cases[i].mult;
		assert_int_equal(read_info(bench)->conv.valid, cases[i].is_possible);
		assert_int_equal(bench->data.is_timeless, !cases[i].is_possible);
	}
}

static void a_clock_that_perf_calls_unusable_is_not_used(void **state)
{
	struct bench *bench = *state;
	const struct pt_config *pt;

	bench->info.words[CAP_TIME_ZERO] = 0;
	pt = read_info(bench);
	assert_false(pt->conv.valid);
	assert_true(bench->data.is_timeless);
	assert_int_equal(pt->nominal_hz, 2000000000);
}

/* (10^9 << shift) / mult: 4 / 3, 8 / 3 and 32 / 9 GHz. */
static void the_frequency_is_rounded_to_the_nearest(void **state)
{
	struct bench *bench = *state;

	bench->info.words[TIME_MULT] = 3;
	bench->info.words[TIME_SHIFT] = 2;
	assert_int_equal(read_info(bench)->nominal_hz, 1333333333);
	bench->info.words[TIME_SHIFT] = 3;
	assert_int_equal(read_info(bench)->nominal_hz, 2666666667);
	bench->info.words[TIME_MULT] = 9;
	bench->info.words[TIME_SHIFT] = 5;
	assert_int_equal(read_info(bench)->nominal_hz, 3555555556);
}

/* In 100 MHz; a ratio fits into a byte (MSR_PLATFORM_INFO). */
static void the_ratio_is_perfs_where_it_can_be(void **state)
{
	static const struct {
		uint64_t word;
		uint32_t ratio;
	} cases[] = { { 0, 27 }, { 1, 1 }, { 255, 255 }, { 256, 27 }, { 1ull << 32 | 5, 27 } };
	struct bench *bench = *state;

	bench->info.words[TIME_MULT] = 3;
	bench->info.words[TIME_SHIFT] = 3;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bench->info.words[MAX_NONTURBO] = cases[i].word;
		assert_int_equal(read_info(bench)->max_nonturbo, cases[i].ratio);
	}
}

static void the_mtc_period_is_in_the_bits_that_perf_names(void **state)
{
	struct bench *bench = *state;

	bench->events[0].config = 0x200 | 15 << 14;
	assert_int_equal(read_info(bench)->mtc_shift, 15);
	bench->events[0].config = 0x200;
	assert_true(read_info(bench)->mtc);
	assert_int_equal(bench->data.pt.mtc_shift, 0);
	bench->events[0].config = 9 << 14;
	assert_false(read_info(bench)->mtc);
	bench->events[0].config = UINT64_MAX;
	bench->info.words[MTC_PERIOD_BITS] = 0;
	assert_false(read_info(bench)->mtc);
	bench->info.words[MTC_PERIOD_BITS] = UINT64_MAX;
	assert_int_equal(read_info(bench)->mtc_shift, 15);
}

/* A word for whether there is event trace follows the filter, which has a NUL at least. */
static void a_filter_is_padded_to_words(void **state)
{
	static const struct {
		const char *filter;
		size_t words;
	} cases[] = {
		{ "", 0 }, { "a", 1 }, { "1234567", 1 }, { "12345678", 2 }, { "filter 0x1/0x10", 2 }
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint64_t has = 0; has < 2; has++) {
			const size_t length = strlen(cases[i].filter);

			memset(&bench->info.words[FILTER], 0, 8 * (WORDS - FILTER));
			bench->info.words[FILTER_LENGTH] = length;
			memcpy(&bench->info.words[FILTER], cases[i].filter, length);
			bench->info.words[FILTER + cases[i].words] = has;
			bench->count = FILTER + cases[i].words + 1;
			assert_string_equal(read_info(bench)->filter, cases[i].filter);
			assert_int_equal(bench->data.pt.have_event_trace, has);
		}
}

static void a_long_filter_is_kept_as_far_as_it_fits(void **state)
{
	enum { LENGTH = 300, FITS = sizeof(((struct pt_config *)NULL)->filter) - 1 };
	struct bench *bench = *state;
	const struct pt_config *pt;

	for (size_t length = FITS - 1; length <= FITS + 1; length++) {
		bench->info.words[FILTER_LENGTH] = length;
		memset(&bench->info.words[FILTER], 'f', length);
		bench->count = WORDS;
		assert_int_equal(strnlen(read_info(bench)->filter, FITS + 1),
				 length < FITS ? length : FITS);
	}
	bench->info.words[FILTER_LENGTH] = LENGTH;
	memset(&bench->info.words[FILTER], 'f', LENGTH);
	bench->info.words[FILTER + (LENGTH + 8) / 8] = 1;
	bench->count = WORDS;
	pt = read_info(bench);
	assert_int_equal(strlen(pt->filter), FITS);
	assert_true(pt->have_event_trace);
	bench->info.words[FILTER_LENGTH] = UINT64_MAX - 3;
	pt = read_info(bench);
	assert_string_equal(pt->filter, "");
	assert_false(pt->have_event_trace);
}

static void samples_of_trace_stand_alone_as_snapshots_do(void **state)
{
	struct bench *bench = *state;

	bench->data.events.count = 2;
	bench->events[1].sample_type |= PERF_SAMPLE_AUX;
	assert_true(read_info(bench)->snapshot);
	bench->data.events.count = 1;
	assert_false(read_info(bench)->snapshot);
	bench->info.words[SNAPSHOT] = 1;
	assert_true(read_info(bench)->snapshot);
}

static void the_first_event_of_the_pmu_decides(void **state)
{
	struct bench *bench = *state;

	bench->data.events.count = 3;
	bench->events[0].type = 1;
	bench->events[1].type = bench->events[2].type = PMU;
	bench->events[1].config = 0x400;
	bench->events[1].name = "intel_pt/tsc/";
	bench->events[2].config = 0x2;
	assert_true(read_info(bench)->tsc);
	assert_false(bench->data.pt.cyc);
	assert_false(bench->events[0].is_pt);
	assert_true(bench->events[1].is_pt && bench->events[2].is_pt);
	assert_string_equal(bench->events[0].name, "");
	assert_string_equal(bench->events[1].name, "intel_pt/tsc/");
	assert_string_equal(bench->events[2].name, "intel_pt");
}

static void one_event_without_time_makes_all_timeless(void **state)
{
	struct bench *bench = *state;

	bench->data.events.count = 3;
	for (size_t without = 0; without < 3; without++)
		for (uint64_t type = 1; type <= 2; type++) {
			for (size_t i = 0; i < 3; i++)
				bench->events[i].sample_type =
					i == without ? PERF_SAMPLE_IP : PERF_SAMPLE_TIME;
			bench->info.type = type;
			(void)read_info(bench);
			assert_true(bench->data.is_timeless);
		}
}

static void the_cpu_is_known_when_it_is_intels(void **state)
{
	static const struct {
		const char *text;
		uint32_t family, model, stepping;
	} cases[] = { { "GenuineIntel,6,85,7", 6, 85, 7 },
		      { "AuthenticAMD,25,1,1", 0, 0, 0 },
		      { "GenuineIntel,6,85", 0, 0, 0 },
		      { "GenuineIntel,6,x,7", 0, 0, 0 },
		      { "", 0, 0, 0 },
		      { NULL, 0, 0, 0 } };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pt_config *pt;

		bench->data.features.cpuid = cases[i].text;
		pt = read_info(bench);
		assert_int_equal(pt->cpu_family, cases[i].family);
		assert_int_equal(pt->cpu_model, cases[i].model);
		assert_int_equal(pt->cpu_stepping, cases[i].stepping);
	}
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(the_words_tell_how_the_trace_was_made),
		WITH_FIXTURE(how_switches_were_recorded_takes_two_bits),
		WITH_FIXTURE(packets_are_on_when_their_bit_is_in_the_config),
		WITH_FIXTURE(branches_are_off_when_the_config_says_so),
		WITH_FIXTURE(a_threshold_of_cycles_is_a_power_of_two),
		WITH_FIXTURE(other_traces_are_not_read),
		WITH_FIXTURE(what_old_perf_did_not_write_is_unknown),
		WITH_FIXTURE(an_info_cut_anywhere_does_no_harm),
		WITH_FIXTURE(impossible_clocks_are_none),
		WITH_FIXTURE(a_clock_that_perf_calls_unusable_is_not_used),
		WITH_FIXTURE(the_frequency_is_rounded_to_the_nearest),
		WITH_FIXTURE(the_ratio_is_perfs_where_it_can_be),
		WITH_FIXTURE(the_mtc_period_is_in_the_bits_that_perf_names),
		WITH_FIXTURE(a_filter_is_padded_to_words),
		WITH_FIXTURE(a_long_filter_is_kept_as_far_as_it_fits),
		WITH_FIXTURE(samples_of_trace_stand_alone_as_snapshots_do),
		WITH_FIXTURE(the_first_event_of_the_pmu_decides),
		WITH_FIXTURE(one_event_without_time_makes_all_timeless),
		WITH_FIXTURE(the_cpu_is_known_when_it_is_intels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
