#include "decode/pt/pt_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* An MTC every 8 crystal ticks of 84 TSC ticks each; one TSC tick a cycle at CBR 20. */
static const struct pt_config config = { .tsc = true,
					 .mtc = true,
					 .cyc = true,
					 .mtc_shift = 3,
					 .ctc_n = 84,
					 .ctc_d = 1,
					 .max_nonturbo = 20 };

enum { START = 10000000, CTC = 0x800 };

static void anchor(struct pt_clock *clock)
{
	pt_clock_init(clock, &config);
	pt_clock_tsc(clock, &(struct pt_tsc_group){ .tsc = START, .have_tma = true, .ctc = CTC });
}

static void before_a_tsc_nothing_is_known(void **state)
{
	struct pt_clock clock;

	pt_clock_init(&clock, &config);
	assert_false(clock.known);
	pt_clock_mtc(&clock, 1);
	assert_false(clock.known);
	assert_int_equal(clock.now, 0);
}

static void an_mtc_moves_by_whole_periods(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	for (unsigned i = 1; i < 1000; i++) {
		pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + i));
		assert_int_equal(clock.now, START + i * 8 * 84);
	}
}

static void lost_mtcs_count_up_to_255(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 255));
	assert_int_equal(clock.now, START + 255 * 8 * 84);
}

static void cycles_fill_the_time_between(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 10);
	pt_clock_cyc(&clock, 100);
	assert_int_equal(clock.now, START + 200);
	pt_clock_cyc(&clock, 5);
	assert_int_equal(clock.now, START + 210);
}

/* Ratios have no end in binary, but these cycles take whole ticks. */
static void whole_ticks_stay_whole(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 24);
	for (uint64_t ticks = 5; ticks < 1000; ticks += 5) {
		pt_clock_cyc(&clock, 6);
		assert_int_equal(clock.now, START + ticks);
	}
	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	pt_clock_cyc(&clock, 8 * 84 * 6 / 7);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 2));
	for (uint64_t ticks = 7; ticks < 600; ticks += 7) {
		pt_clock_cyc(&clock, 6);
		assert_int_equal(clock.now, START + 2 * 8 * 84 + ticks);
	}
}

static void the_ratio_is_measured_between_mtcs(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	pt_clock_cyc(&clock, 8 * 84 * 10 / 9);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 2));
	pt_clock_cyc(&clock, 100);
	assert_in_range(clock.now - START - 2 * 8 * 84, 89, 91);
}

static void a_ratio_far_from_cbr_is_not_believed(void **state)
{
	static const uint64_t cycles[] = { 10, 8 * 84 * 2 / 3, 8 * 84 * 3 / 2, 8 * 84 * 100 };

	for (size_t i = 0; i < 4; i++) {
		struct pt_clock clock;

		anchor(&clock);
		pt_clock_cbr(&clock, 20);
		pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
		pt_clock_cyc(&clock, cycles[i]);
		clock.now = START; /* its time does not matter here */
		pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 2));
		pt_clock_cyc(&clock, 100);
		assert_int_equal(clock.now, START + 2 * 8 * 84 + 100);
	}
}

/* A ratio that was measured is better than a CBR, unless the CBR is another one. */
/* MTCs are 672 ticks apart. */
static void below_a_threshold_cycles_are_told_later(void **state)
{
	struct pt_config least = config;
	struct pt_clock clock;

	least.cyc_least = 1024;
	pt_clock_init(&clock, &least);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START, .have_tma = true, .ctc = CTC });
	pt_clock_cbr(&clock, 20);
	pt_clock_cyc(&clock, 600);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	assert_int_equal(clock.now, START + 672);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 2));
	pt_clock_cyc(&clock, 1025); /* since the CYC before, not since the MTC */
	assert_int_equal(clock.now, START + 1625);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 3));
	pt_clock_mtc(&clock,
		     (uint8_t)((CTC >> 3) + 8)); /* more cycles would have been told: it slept */
	assert_int_equal(clock.now, START + 8 * 672);
	pt_clock_cyc(&clock, 1100);
	assert_int_equal(clock.now, START + 8 * 672 + 1100 - 1024);
	assert_int_equal(clock.corrections, 0);
}

static void a_cbr_is_for_a_change(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	pt_clock_cyc(&clock, 8 * 84 * 10 / 9);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 2));
	pt_clock_cbr(&clock, 20);
	pt_clock_cyc(&clock, 100);
	assert_in_range(clock.now - START - 2 * 8 * 84, 89, 91);
	pt_clock_cbr(&clock, 10);
	pt_clock_cyc(&clock, 100);
	assert_int_equal(clock.now, START + 2 * 8 * 84 + 2 * 200);
}

/* With a period of 2^15 TMA shows but one bit of what MTC does. */
static void the_first_mtc_is_later_than_the_tma(void **state)
{
	struct pt_config rare = config;
	struct pt_clock clock;

	rare.mtc_shift = 15;
	pt_clock_init(&clock, &rare);
	pt_clock_tsc(&clock,
		     &(struct pt_tsc_group){ .tsc = START, .have_tma = true, .ctc = 0x8000 });
	pt_clock_mtc(&clock, 0x81);
	assert_int_equal(clock.now, START + 2 * ((uint64_t)84 << 15));
}

static void time_never_runs_backwards_and_says_so(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	pt_clock_cyc(&clock, 1000);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 1000 });
	assert_int_equal(clock.corrections, 0);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 900 });
	assert_int_equal(clock.now, START + 1000);
	assert_int_equal(clock.corrections, 1);
	pt_clock_cyc(&clock, 50);
	assert_int_equal(clock.now, START + 1000);
	pt_clock_cyc(&clock, 60);
	assert_int_equal(clock.now, START + 1010);
}

static void a_tsc_is_extended_to_what_is_near(void **state)
{
	const uint64_t high = (uint64_t)5 << 56;
	struct pt_clock clock;

	pt_clock_init(&clock, &config);
	clock.reference = high + 1000;
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = 900 });
	assert_int_equal(clock.now, high + 900);
	clock.reference = 0;
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = 2000 });
	assert_int_equal(clock.now, high + 2000);
}

static void a_tsc_after_the_buffer_was_read_is_damage(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	clock.reference = START + 100000;
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 100001 });
	assert_int_equal(clock.now, START);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	assert_int_equal(clock.now, START + 8 * 84);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 100000 });
	assert_int_equal(clock.now, START + 100000);
}

/* Where nothing is known yet, a time that cannot be is worse than none. */
static void a_first_tsc_that_cannot_be_is_damage(void **state)
{
	struct pt_clock clock;

	pt_clock_init(&clock, &config);
	clock.reference = START + 100000;
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 100001, .have_tma = true });
	assert_false(clock.known || clock.have_ctc || clock.now);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 99999, .have_tma = true });
	assert_true(clock.known && clock.have_ctc);
	assert_int_equal(clock.now, START + 99999);
}

static void a_tsc_wraps_at_56_bits(void **state)
{
	struct pt_clock clock;

	pt_clock_init(&clock, &config);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = PT_TSC_MASK - 9 });
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = 10 });
	assert_int_equal(clock.now, PT_TSC_MASK + 11);
}

static void a_guests_tsc_shows_its_offset_and_the_hosts_time(void **state)
{
	const uint64_t offset = (uint64_t)0 - 9000000;
	struct pt_clock clock;
	uint64_t found;

	anchor(&clock);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	pt_clock_tsc(&clock,
		     &(struct pt_tsc_group){ .tsc = (START + 16 * 84 + 3 + offset) & PT_TSC_MASK,
					     .have_tma = true,
					     .ctc = CTC + 16,
					     .fast = 3,
					     .guest = true,
					     .vmcs = 7,
					     .in_psb = true });
	assert_int_equal(clock.now, START + 16 * 84 + 3);
	assert_true(pt_offsets_find(&clock.offsets, 7, &found));
	assert_int_equal(found, offset & PT_TSC_MASK);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 3));
	assert_int_equal(clock.now, START + 3 * 8 * 84);
}

/* The crystal stands still while a guest sleeps, as the MTCs that are missing. */
static void a_guest_that_wakes_up_has_the_offset_that_it_had(void **state)
{
	struct pt_tsc_group psb = { .tsc = START - 5000, .have_tma = true, .ctc = CTC };
	struct pt_tsc_group wake = { .tsc = START - 5000 + 40000000, .have_tma = true };
	struct pt_clock clock;
	uint64_t found;

	psb.guest = wake.guest = psb.in_psb = true;
	wake.ctc = CTC + 8;
	anchor(&clock);
	pt_clock_tsc(&clock, &wake); /* there is none yet, and none is made of this */
	assert_false(pt_offsets_find(&clock.offsets, 0, &found));
	pt_clock_tsc(&clock, &psb); /* nor of what is counted from there */
	assert_false(pt_offsets_find(&clock.offsets, 0, &found));
	anchor(&clock);
	pt_clock_tsc(&clock, &psb);
	pt_clock_tsc(&clock, &wake);
	assert_int_equal(clock.now, START + 40000000);
	assert_true(pt_offsets_find(&clock.offsets, 0, &found));
	assert_int_equal(found, -5000 & PT_TSC_MASK);
}

static void a_guest_without_offset_is_not_translated(void **state)
{
	struct pt_tsc_group group = { .have_tma = true, .ctc = CTC + 8, .guest = true };
	struct pt_clock clock;

	anchor(&clock);
	group.tsc = START + 8 * 84 + 1; /* the crystal's edges are rounded */
	pt_clock_tsc(&clock, &group);
	assert_int_equal(clock.translated, 0);
	anchor(&clock);
	group.tsc = START + 8 * 84 + 1000;
	pt_clock_tsc(&clock, &group);
	assert_int_equal(clock.translated, 1);
}

/* Where no TSC offset is to be taken off, what guests show is as good as what the host does. */
static void raw_tscs_are_taken_as_they_are(void **state)
{
	struct pt_config raw = config;
	struct pt_clock clock;

	raw.guest_tsc_raw = true;
	pt_clock_init(&clock, &raw);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START, .have_tma = true, .ctc = CTC });
	clock.reference = START + 1000;
	pt_clock_tsc(&clock,
		     &(struct pt_tsc_group){ .tsc = 2 * START, .have_tma = true, .ctc = CTC + 8 });
	assert_int_equal(clock.now, 2 * START);
}

static void without_crystal_a_known_offset_serves(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_offsets_set(&clock.offsets, 7, 1000);
	pt_clock_tsc(&clock,
		     &(struct pt_tsc_group){ .tsc = START + 5000, .guest = true, .vmcs = 7 });
	assert_int_equal(clock.now, START + 4000);
}

static void a_guests_tsc_that_nothing_explains_changes_no_time(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = 55, .guest = true, .vmcs = 7 });
	assert_int_equal(clock.now, START);
	pt_clock_mtc(&clock, (uint8_t)((CTC >> 3) + 1));
	assert_int_equal(clock.now, START);
}

static void after_an_overflow_the_offset_is_better_than_the_crystal(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_offsets_set(&clock.offsets, 7, 1000);
	pt_clock_doubt(&clock);
	pt_clock_tsc(&clock, &(struct pt_tsc_group){ .tsc = START + 90001000,
						     .have_tma = true,
						     .ctc = CTC + 8,
						     .guest = true,
						     .vmcs = 7 });
	assert_int_equal(clock.now, START + 90000000);
}

static void crystal_ticks_become_tsc_ticks(void **state)
{
	const struct pt_config none = { .ctc_n = 84 }, odd = { .ctc_n = 7, .ctc_d = 3 };

	assert_int_equal(pt_ctc_to_tsc(&none, 100), 0);
	assert_int_equal(pt_ctc_to_tsc(&odd, 100), 233);
	assert_int_equal(pt_ctc_to_tsc(&odd, -3), (uint64_t)-7);
	assert_int_equal(pt_ctc_to_tsc(&odd, (int64_t)3 << 59), (uint64_t)7 << 59);
}

static void without_tsc_packets_time_is_zero_and_known(void **state)
{
	const struct pt_config timeless = { .tsc = false };
	struct pt_clock clock;

	pt_clock_init(&clock, &timeless);
	assert_true(clock.known);
	assert_int_equal(clock.now, 0);
}

static void a_count_that_leads_behind_the_end_of_tracing_is_left_out(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	clock.reference = START + 1000;
	pt_clock_long_cyc(&clock, 400);
	assert_int_equal(clock.now, START + 400);
	pt_clock_long_cyc(&clock, 601);
	assert_int_equal(clock.now, START + 400);
	pt_clock_long_cyc(&clock, 600);
	assert_int_equal(clock.now, START + 1000);
}

/* Where nobody knows when tracing ended. */
static void a_count_that_no_time_can_hold_is_left_out(void **state)
{
	struct pt_clock clock;

	anchor(&clock);
	pt_clock_cbr(&clock, 20);
	pt_clock_long_cyc(&clock, UINT64_MAX);
	assert_int_equal(clock.now, START);
	pt_clock_long_cyc(&clock, UINT64_C(1) << 60);
	assert_int_equal(clock.now, START);
	pt_clock_long_cyc(&clock, UINT64_C(1) << 43);
	assert_int_equal(clock.now, START + (UINT64_C(1) << 43));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_a_tsc_nothing_is_known),
		cmocka_unit_test(an_mtc_moves_by_whole_periods),
		cmocka_unit_test(lost_mtcs_count_up_to_255),
		cmocka_unit_test(cycles_fill_the_time_between),
		cmocka_unit_test(whole_ticks_stay_whole),
		cmocka_unit_test(the_ratio_is_measured_between_mtcs),
		cmocka_unit_test(a_ratio_far_from_cbr_is_not_believed),
		cmocka_unit_test(below_a_threshold_cycles_are_told_later),
		cmocka_unit_test(a_cbr_is_for_a_change),
		cmocka_unit_test(the_first_mtc_is_later_than_the_tma),
		cmocka_unit_test(time_never_runs_backwards_and_says_so),
		cmocka_unit_test(a_tsc_is_extended_to_what_is_near),
		cmocka_unit_test(a_tsc_after_the_buffer_was_read_is_damage),
		cmocka_unit_test(a_first_tsc_that_cannot_be_is_damage),
		cmocka_unit_test(a_tsc_wraps_at_56_bits),
		cmocka_unit_test(a_guests_tsc_shows_its_offset_and_the_hosts_time),
		cmocka_unit_test(a_guest_that_wakes_up_has_the_offset_that_it_had),
		cmocka_unit_test(a_guest_without_offset_is_not_translated),
		cmocka_unit_test(raw_tscs_are_taken_as_they_are),
		cmocka_unit_test(without_crystal_a_known_offset_serves),
		cmocka_unit_test(a_guests_tsc_that_nothing_explains_changes_no_time),
		cmocka_unit_test(after_an_overflow_the_offset_is_better_than_the_crystal),
		cmocka_unit_test(crystal_ticks_become_tsc_ticks),
		cmocka_unit_test(without_tsc_packets_time_is_zero_and_known),
		cmocka_unit_test(a_count_that_leads_behind_the_end_of_tracing_is_left_out),
		cmocka_unit_test(a_count_that_no_time_can_hold_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
