#include "correlate/vmcs_seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* Time stamps of host and guests by hand, and what is observed of them. Whole traces are in
 * test_tsc_offset_infer.c. */

enum {
	VMCS = 0x2664e,
	OTHER = 0x2664f,
	TICK = 80,
	QUEUE = 5,
	STEP = 100,
	SEEN = 1024,
	RUNS = 1024
};

static const uint64_t noon = 1000000000000, offset = 7777777777;

/* A trace in the making, and the table made of it. */
struct fixture {
	struct pt_bytes trace;
	struct bench_queue queue;
	struct pt_config config;
	struct vmcs_table table;
	struct vmcs_walks walks;
	int64_t count; /* of the crystal */
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ .config = bench_skylake_x, .count = 1000 };
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	vmcs_table_free(&f->table);
	bench_queue_free(&f->queue);
	pt_bytes_free(&f->trace);
	return 0;
}

/* The host's TSC now: 1000 ticks of the crystal at noon. */
static uint64_t now(const struct fixture *f)
{
	return noon + (uint64_t)(f->count - 1000) * TICK;
}

/* STEP ticks later the host's TSC is `off` from what it should be. */
static void put_host(struct fixture *f, int64_t off)
{
	f->count += STEP;
	pt_put_psb_plus(&f->trace,
			&(struct pt_psb_plus){ .vmcs = PT_NO_VMCS,
					       .tsc = (now(f) + (uint64_t)off) & PT_TSC_MASK,
					       .ctc = (uint16_t)f->count });
}

/* STEP ticks later a guest shows its TSC. */
static void put_guest(struct fixture *f, uint64_t vmcs, uint64_t by)
{
	f->count += STEP;
	pt_put_psb_plus(&f->trace, &(struct pt_psb_plus){ .nr = true,
							  .vmcs = vmcs,
							  .tsc = (now(f) + by) & PT_TSC_MASK,
							  .ctc = (uint16_t)f->count });
}

/* STEP ticks later a TSC of which nothing around it says whose it is. */
static void put_anyones(struct fixture *f, uint64_t by)
{
	f->count += STEP;
	pt_put_value(&f->trace, PT_TSC, (now(f) + by) & PT_TSC_MASK);
	pt_put_tma(&f->trace, (uint16_t)f->count, 0);
}

static void collect(struct fixture *f)
{
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
}

static const struct vmcs_seen *seen_of(const struct vmcs_table *table, uint64_t vmcs)
{
	for (size_t i = 0; i < table->seen.count; i++)
		if (table->seen.items[i].vmcs == vmcs)
			return &table->seen.items[i];
	fail_msg("%#lx was not seen", (unsigned long)vmcs);
	return NULL;
}

static const struct tsc_run *run_of(const struct fixture *f, size_t index)
{
	const struct vmcs_seen *seen = seen_of(&f->table, VMCS);

	assert_true(index < seen->runs.count);
	return &seen->runs.items[index];
}

/* All observations are on one line, with this offset. */
static void assert_one_run(const struct fixture *f, uint64_t count, enum tsc_quality quality)
{
	const struct tsc_run *run = run_of(f, 0);

	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 1);
	assert_int_equal(run->count, count);
	assert_int_equal(tsc_run_offset(run), offset);
	assert_int_equal(run->quality, quality);
	assert_int_equal(run->queue, QUEUE);
}

static void the_host_before_and_after_confirms_an_observation(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_CONFIRMED);
	assert_int_equal(run_of(f, 0)->first.host, noon + 2l * STEP * TICK);
	assert_int_equal(f->table.packets, 3);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 1);
	assert_int_equal(seen_of(&f->table, VMCS)->queue, QUEUE);
}

static void before_alone_is_good(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	collect(f);
	assert_one_run(f, 1, TSC_GOOD);
}

static void after_alone_is_good_as_well(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_GOOD);
	/* when the guest was seen: by the time of the host's TSC another one may run */
	assert_int_equal(run_of(f, 0)->first.host, noon + 1l * STEP * TICK);
}

static void an_overflow_in_between_is_a_doubt(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	pt_put_value(&f->trace, PT_OVF, 0);
	put_guest(f, VMCS, offset);
	collect(f);
	assert_one_run(f, 1, TSC_DOUBTFUL);
}

static void an_overflow_after_a_guest_is_a_doubt(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	pt_put_value(&f->trace, PT_OVF, 0);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_DOUBTFUL);
}

/* The crystal may have missed ticks before or after the guest's time stamp. */
static void a_host_at_odds_with_the_crystal_is_a_doubt(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_guest(f, VMCS, offset);
	put_host(f, 2 * TICK + 1);
	collect(f);
	assert_one_run(f, 2, TSC_DOUBTFUL);
}

static void two_ticks_behind_the_crystal_are_no_doubt(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_host(f, -2 * TICK);
	collect(f);
	assert_one_run(f, 1, TSC_CONFIRMED);
}

static void two_ticks_ahead_of_the_crystal_are_no_doubt(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_host(f, 2 * TICK);
	collect(f);
	assert_one_run(f, 1, TSC_CONFIRMED);
}

static void an_overflow_before_the_host_shows_is_a_doubt(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	pt_put_value(&f->trace, PT_OVF, 0);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_DOUBTFUL);
}

/* Where the host's TSC lies between two edges of the crystal nobody knows. */
static void a_host_without_tma_tells_nothing(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	f->count += STEP;
	pt_put_psb_plus(&f->trace,
			&(struct pt_psb_plus){ .no_tma = true, .vmcs = PT_NO_VMCS, .tsc = now(f) });
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_GOOD);
}

/* It may have slept for more ticks of the crystal than a TMA shows. */
static void a_host_that_wakes_up_is_a_doubt(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	pt_put(&f->trace, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x1000 });
	put_anyones(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_DOUBTFUL);
}

/* What the host's TSC before a loss cannot tell, the one after it can. */
static void after_a_loss_the_next_host_tells(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	pt_put_value(&f->trace, PT_OVF, 0);
	f->count += CRYSTAL_TMA_RANGE;
	put_guest(f, VMCS, offset);
	put_guest(f, OTHER, offset + 1);
	put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 2);
	assert_int_equal(run_of(f, 0)->count, 2);
	assert_int_equal(run_of(f, 0)->quality, TSC_DOUBTFUL);
	assert_int_equal(tsc_run_offset(run_of(f, 0)), offset + (uint64_t)CRYSTAL_TMA_RANGE * TICK);
	assert_int_equal(run_of(f, 1)->count, 1);
	assert_int_equal(run_of(f, 1)->quality, TSC_GOOD);
	assert_int_equal(tsc_run_offset(run_of(f, 1)), offset);
	assert_int_equal(seen_of(&f->table, OTHER)->runs.count, 1);
}

static void a_guest_alone_tells_nothing(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	put_guest(f, VMCS, offset);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 2);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 0);
}

static void a_break_ends_what_is_known_of_the_crystal(void **state)
{
	struct fixture *f = *state;
	size_t first;

	put_host(f, 0);
	first = f->trace.size;
	put_guest(f, VMCS, offset);
	bench_queue_add(&f->queue, f->trace.data, first, false);
	bench_queue_add(&f->queue, f->trace.data + first, f->trace.size - first, true);
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 0);
}

/* Between two time stamps of the host, guests with these offsets. */
static void put_guests(struct fixture *f, const uint64_t *by, size_t count)
{
	put_host(f, 0);
	for (size_t i = 0; i < count; i++)
		put_guest(f, VMCS, by[i]);
	put_host(f, 0);
}

static void one_that_agrees_with_none_is_an_outlier(void **state)
{
	static const uint64_t by[] = { 10000, 10000, 90000, 10000, 10000 };
	struct fixture *f = *state;

	put_guests(f, by, 5);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 1);
	assert_int_equal(run_of(f, 0)->count, 4);
	assert_int_equal(seen_of(&f->table, VMCS)->outliers, 1);
}

static void two_that_agree_are_a_change(void **state)
{
	static const uint64_t by[] = { 10000, 10000, 90000, 90000, 90000, 10000, 10000 };
	struct fixture *f = *state;

	put_guests(f, by, 7);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 3);
	assert_int_equal(run_of(f, 0)->count, 2);
	assert_int_equal(run_of(f, 1)->count, 3);
	assert_int_equal(tsc_run_offset(run_of(f, 1)), 90000);
	assert_int_equal(run_of(f, 1)->first.host, noon + 4l * STEP * TICK);
	assert_int_equal(run_of(f, 2)->count, 2);
	assert_int_equal(seen_of(&f->table, VMCS)->outliers, 0);
}

static void outliers_in_a_row_are_runs_of_one(void **state)
{
	static const uint64_t by[] = { 10000, 10000, 900000, 500000, 10000, 10000 };
	struct fixture *f = *state;

	put_guests(f, by, 6);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 4);
	assert_int_equal(run_of(f, 1)->count, 1);
	assert_int_equal(tsc_run_offset(run_of(f, 1)), 900000);
	assert_int_equal(run_of(f, 2)->count, 1);
	assert_int_equal(run_of(f, 3)->count, 2);
}

static void what_is_left_over_at_the_end_counts(void **state)
{
	static const uint64_t by[] = { 10000, 10000, 90000 };
	struct fixture *f = *state;

	put_guests(f, by, 3);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 2);
	assert_int_equal(run_of(f, 1)->count, 1);
	assert_false(seen_of(&f->table, VMCS)->have_pending);
}

/* 8000 ticks of the TSC are a step: at half the speed the offset shrinks by 4000 with each. */
static void three_on_a_slope_are_a_scaled_guest(void **state)
{
	static const uint64_t by[] = { 100000, 96000, 92000, 88000 };
	struct fixture *f = *state;
	const struct tsc_run *run;

	put_guests(f, by, 4);
	collect(f);
	run = run_of(f, 0);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 1);
	assert_int_equal(run->count, 4);
	assert_true(run->slope_low <= -0.5 && -0.5 <= run->slope_high);
	assert_true(run->slope_low > -0.6 && run->slope_high < -0.4);
	assert_int_equal(seen_of(&f->table, VMCS)->outliers, 0);
}

static void each_vmcs_is_a_guest_of_its_own(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, OTHER, 5);
	put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_CONFIRMED);
	assert_int_equal(f->table.seen.count, 2);
	assert_int_equal(tsc_run_offset(&seen_of(&f->table, OTHER)->runs.items[0]), 5);
}

static void a_guest_without_a_vmcs_is_counted(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, PT_NO_VMCS, offset);
	collect(f);
	assert_int_equal(f->table.seen.count, 0);
	assert_int_equal(f->table.no_vmcs, 1);
	assert_int_equal(f->table.packets, 2);
}

static void a_guest_without_tma_is_counted_and_tells_nothing(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	pt_put_psb_plus(&f->trace, &(struct pt_psb_plus){
					   .nr = true, .no_tma = true, .vmcs = VMCS, .tsc = 5 });
	put_host(f, 0);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 1);
	assert_int_equal(seen_of(&f->table, VMCS)->without_tma, 1);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 0);
}

static void more_vmcss_than_any_machine_has_are_dropped(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	for (uint64_t vmcs = 0; vmcs < SEEN + 3; vmcs++)
		put_guest(f, vmcs, offset);
	put_host(f, 0);
	collect(f);
	assert_int_equal(f->table.seen.count, SEEN);
	assert_int_equal(f->table.dropped, 3);
	assert_int_equal(seen_of(&f->table, SEEN - 1)->runs.count, 1);
}

static void more_changes_than_any_guest_makes_are_outliers(void **state)
{
	enum { CHANGES = 3000 };
	struct fixture *f = *state;
	const struct vmcs_seen *seen;
	uint64_t kept = 0;

	put_host(f, 0);
	for (uint64_t i = 0; i < CHANGES; i++) {
		put_guest(f, VMCS, i * 10000000);
		put_guest(f, VMCS, i * 10000000);
	}
	put_host(f, 0);
	collect(f);
	seen = seen_of(&f->table, VMCS);
	assert_int_equal(seen->runs.count, RUNS);
	for (size_t i = 0; i < seen->runs.count; i++)
		kept += seen->runs.items[i].count;
	assert_int_equal(kept + seen->outliers, 2 * CHANGES);
}

/* Where there is no room for more, single observations go before runs of several. */
static void a_run_is_worth_more_than_outliers(void **state)
{
	struct fixture *f = *state;
	const struct vmcs_seen *seen;
	uint64_t kept = 0;

	put_host(f, 0);
	for (uint64_t i = 0; i < 1100; i++) /* on no line */
		put_guest(f, VMCS, i * i * i * 1000000);
	for (unsigned i = 0; i < 5; i++)
		put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	seen = seen_of(&f->table, VMCS);
	assert_true(seen->outliers >= 1000);
	for (size_t i = 0; i < seen->runs.count; i++)
		kept += seen->runs.items[i].count;
	assert_int_equal(kept + seen->outliers, 1105);
	assert_int_equal(run_of(f, seen->runs.count - 1)->count, 5);
}

static void many_may_wait_for_the_host(void **state)
{
	enum { MANY = 2 * TSC_WAITING_MAX + 3 };
	struct fixture *f = *state;

	put_host(f, 0);
	for (unsigned i = 0; i < MANY; i++)
		put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect(f);
	assert_one_run(f, MANY, TSC_CONFIRMED);
}

static void without_a_pip_the_hosts_tsc_is_known_by_its_value(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_anyones(f, 0);
	collect(f);
	assert_one_run(f, 1, TSC_CONFIRMED);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 1);
}

static void without_a_pip_a_guests_tsc_is_known_by_its_offset(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_host(f, 0);
	put_anyones(f, offset); /* observed from the host before it, and from the one after it */
	put_host(f, 0);
	collect(f);
	assert_one_run(f, 3, TSC_CONFIRMED);
}

static void without_a_pip_any_other_tsc_is_the_one_of_whoever_ran(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_anyones(f, offset + 1000000);
	put_host(f, 0);
	put_anyones(f, 1000000);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 2);
	assert_int_equal(f->table.packets, 5);
}

static void of_several_offsets_of_a_guest_the_last_one_tells(void **state)
{
	static const uint64_t by[] = { 10000, 10000, 9000000, 9000000 };
	struct fixture *f = *state;

	put_guests(f, by, 4);
	put_anyones(f, 9000000);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->packets, 5);
	assert_int_equal(run_of(f, 1)->count, 3);
}

static void where_no_guest_was_seen_a_jump_is_the_hosts(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_anyones(f, 1000000);
	collect(f);
	assert_int_equal(f->table.packets, 2);
	assert_int_equal(f->table.no_vmcs, 0);
	assert_int_equal(f->table.seen.count, 0);
}

/* As a PSB+ that lost its beginning: no guest is ahead of its host unless its TSC was set so. */
static void what_would_take_the_host_back_is_a_guests(void **state)
{
	struct fixture *f = *state;
	size_t size;

	put_host(f, 0);
	size = f->trace.size;
	put_anyones(f, (uint64_t)-1000000);
	put_guest(f, VMCS, (uint64_t)-1000000);
	bench_queue_add(&f->queue, f->trace.data, size, false);
	bench_queue_add(&f->queue, f->trace.data + size, f->trace.size - size, true);
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
	assert_int_equal(f->table.no_vmcs, 1);
	assert_int_equal(seen_of(&f->table, VMCS)->runs.count, 0);
}

static void the_first_host_tsc_tells_the_phase_of_the_crystal(void **state)
{
	struct fixture *f = *state;

	pt_put_psb_plus(&f->trace, &(struct pt_psb_plus){ .tsc = noon, .no_tma = true });
	f->count += STEP;
	pt_put_psb_plus(&f->trace, &(struct pt_psb_plus){ .tsc = noon + 7, .ctc = 999, .fast = 7 });
	put_host(f, 0);
	collect(f);
	assert_true(f->table.phase.valid);
	assert_int_equal(f->table.phase.host, noon);
	assert_int_equal(f->table.phase.ctc, 999);
}

static void a_guest_is_first_seen_when_the_crystal_says(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	put_guest(f, VMCS, offset);
	collect(f);
	assert_int_equal(seen_of(&f->table, VMCS)->first_host, noon + 2l * STEP * TICK);
}

static void or_about_when_the_recorder_read_it(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	f->queue.spans[0].reference = noon + 12345;
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
	assert_int_equal(seen_of(&f->table, VMCS)->first_host, noon + 12345);
}

/* A trace of a guest alone, which the kernel says ended at some time. */
static void collect_that_stopped(struct fixture *f, uint64_t stop_ns)
{
	f->config.conv = (struct time_conv){ .valid = true, .shift = 31, .mult = 1u << 30 };
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	f->queue.spans[0].stop_ns = stop_ns;
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
}

static void the_end_of_tracing_dates_a_guest_roughly(void **state)
{
	struct fixture *f = *state;
	const struct vmcs_seen *seen;

	put_guest(f, VMCS, offset);
	pt_put_value(&f->trace, PT_MTC, (uint8_t)((f->count + 80) >> 3));
	collect_that_stopped(f, 1000000); /* half as many as ticks */
	seen = seen_of(&f->table, VMCS);
	assert_true(seen->rough.valid);
	assert_int_equal(seen->rough.guest, now(f) + offset);
	assert_int_equal(seen->rough.ctc, (uint16_t)f->count);
	assert_int_equal(seen->rough.queue, QUEUE);
	assert_in_range(seen->rough.host, 2000000 - 80 * TICK, 2000000 - 72 * TICK);
}

static void the_first_end_that_is_dated_tells(void **state)
{
	static const uint64_t stop_ns[] = { 1000000, 5000000, 0 };
	struct fixture *f = *state;
	size_t size;

	put_guest(f, VMCS, offset);
	size = f->trace.size;
	for (unsigned i = 0; i < 3; i++) {
		bench_queue_add(&f->queue, f->trace.data, size, i > 0);
		f->queue.spans[i].stop_ns = stop_ns[i];
	}
	f->config.conv = (struct time_conv){ .valid = true, .shift = 31, .mult = 1u << 30 };
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks), 0);
	assert_true(seen_of(&f->table, VMCS)->rough.valid);
	assert_int_equal(seen_of(&f->table, VMCS)->rough.host, 2000000);
}

static void where_nobody_knows_when_it_ended_there_is_no_date(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	collect_that_stopped(f, 0);
	assert_false(seen_of(&f->table, VMCS)->rough.valid);
}

static void the_host_dates_better_than_the_end(void **state)
{
	struct fixture *f = *state;

	put_guest(f, VMCS, offset);
	put_host(f, 0);
	collect_that_stopped(f, 1000000);
	assert_false(seen_of(&f->table, VMCS)->rough.valid);
}

static void progress_is_told_in_bytes_of_all_queues(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	f->walks.done = 1000000;
	collect(f);
	assert_int_equal(f->walks.done, 1000000 + f->trace.size);
}

static void who_is_told_to_stop_does_so(void **state)
{
	struct fixture *f = *state;

	put_host(f, 0);
	put_guest(f, VMCS, offset);
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	f->walks.stop = true;
	assert_int_equal(
		vmcs_table_collect(&f->table, &f->queue.queue, QUEUE, &f->config, &f->walks),
		-PTVM_END);
	assert_true(f->table.packets <= 1);
}

static void an_empty_queue_tells_nothing(void **state)
{
	struct fixture *f = *state;

	collect(f);
	assert_int_equal(f->table.seen.count, 0);
	assert_int_equal(f->table.packets, 0);
	assert_false(f->table.phase.valid);
}

/* Three queues that saw the same guest, at different times or never. */
struct parts {
	struct vmcs_seen seen[3];
	struct tsc_run runs[3];
	struct vmcs_table tables[3];
};

static void make_parts(struct parts *parts)
{
	static const uint64_t first_host[] = { 0, 300, 200 };

	*parts = (struct parts){ 0 };
	for (unsigned i = 0; i < 3; i++) {
		const struct tsc_pair pair = { noon + i, offset };
		struct vmcs_table *table = &parts->tables[i];
		struct vmcs_seen *seen = &parts->seen[i];

		parts->runs[i] = tsc_run_begin(&pair, TSC_GOOD, i);
		*seen = (struct vmcs_seen){ .vmcs = VMCS,
					    .packets = 10u + i,
					    .without_tma = 1,
					    .outliers = 2,
					    .first_host = first_host[i],
					    .queue = i,
					    .rough = { .valid = i > 0, .queue = i } };
		seen->runs.items = &parts->runs[i];
		seen->runs.count = 1;
		table->seen.items = seen;
		table->seen.count = 1;
		table->packets = 100;
		table->no_vmcs = 3;
		table->dropped = 4;
		table->phase = (struct tsc_phase){ .valid = i > 0, .host = noon - i };
	}
}

static void assert_merged(const struct vmcs_table *table)
{
	const struct vmcs_seen *seen = seen_of(table, VMCS);

	assert_int_equal(table->seen.count, 1);
	assert_int_equal(table->packets, 300);
	assert_int_equal(table->no_vmcs, 9);
	assert_int_equal(table->dropped, 12);
	assert_int_equal(table->phase.host, noon - 2);
	assert_int_equal(seen->runs.count, 3);
	assert_int_equal(seen->packets, 33);
	assert_int_equal(seen->without_tma, 3);
	assert_int_equal(seen->outliers, 6);
	assert_int_equal(seen->first_host, 200);
	assert_int_equal(seen->queue, 2);
	assert_int_equal(seen->rough.queue, 1);
}

static void queues_are_merged_in_any_order(void **state)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	for (unsigned i = 0; i < 6; i++) {
		struct vmcs_table table = { 0 };
		struct parts parts;

		make_parts(&parts);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(vmcs_table_merge(&table, &parts.tables[orders[i][k]]), 0);
		assert_merged(&table);
		vmcs_table_free(&table);
	}
}

static void where_no_queue_knows_when_the_lowest_saw_a_guest_first(void **state)
{
	for (unsigned first = 0; first < 2; first++) {
		struct vmcs_table table = { 0 };
		struct parts parts;

		make_parts(&parts);
		parts.seen[1].first_host = 0;
		assert_int_equal(vmcs_table_merge(&table, &parts.tables[first]), 0);
		assert_int_equal(vmcs_table_merge(&table, &parts.tables[1 - first]), 0);
		assert_int_equal(seen_of(&table, VMCS)->queue, 0);
		assert_int_equal(seen_of(&table, VMCS)->first_host, 0);
		vmcs_table_free(&table);
	}
}

/* A queue that saw VMCSs `first` to SEEN + first, one packet each. */
static void make_crowd(struct vmcs_table *table, uint64_t first)
{
	*table = (struct vmcs_table){ 0 };
	for (uint64_t i = 0; i < SEEN; i++)
		assert_true(vec_push(&table->seen,
				     (struct vmcs_seen){ .vmcs = first + i, .packets = 1 }));
}

static void the_lowest_of_too_many_vmcss_stay_in_any_order(void **state)
{
	for (unsigned order = 0; order < 2; order++) {
		struct vmcs_table parts[2], table = { 0 };

		make_crowd(&parts[0], 0);
		make_crowd(&parts[1], 10);
		assert_int_equal(vmcs_table_merge(&table, &parts[order]), 0);
		assert_int_equal(vmcs_table_merge(&table, &parts[!order]), 0);
		assert_int_equal(table.seen.count, SEEN);
		assert_int_equal(table.dropped, 10);
		for (uint64_t i = 0; i < SEEN; i++)
			assert_int_equal(seen_of(&table, i)->packets, i < 10 ? 1 : 2);
		vmcs_table_free(&table);
		vmcs_table_free(&parts[0]);
		vmcs_table_free(&parts[1]);
	}
}

/* A queue that saw one guest with as many runs as there is room for; of the first ones each was
 * observed `count` times. */
static void make_runs(struct vmcs_table *table, size_t queue, unsigned best, uint64_t count)
{
	struct vmcs_seen seen = { .vmcs = VMCS, .queue = queue };

	for (unsigned i = 0; i < RUNS; i++) {
		const struct tsc_pair pair = { noon + 2 * i + queue, i };
		struct tsc_run run = tsc_run_begin(&pair, TSC_GOOD, queue);

		run.count = i < best ? count : 1;
		assert_true(vec_push(&seen.runs, run));
	}
	*table = (struct vmcs_table){ 0 };
	assert_true(vec_push(&table->seen, seen));
}

static void the_best_of_too_many_runs_stay_in_any_order(void **state)
{
	for (unsigned order = 0; order < 2; order++) {
		struct vmcs_table parts[2], table = { 0 };
		const struct vmcs_seen *seen;
		unsigned of_second = 0;

		make_runs(&parts[0], 0, 3, 5);
		make_runs(&parts[1], 1, 1000, 7);
		assert_int_equal(vmcs_table_merge(&table, &parts[order]), 0);
		assert_int_equal(vmcs_table_merge(&table, &parts[!order]), 0);
		seen = seen_of(&table, VMCS);
		assert_int_equal(seen->runs.count, RUNS);
		assert_int_equal(seen->outliers, RUNS);
		for (size_t i = 0; i < RUNS; i++)
			of_second += seen->runs.items[i].queue == 1;
		/* those of many observations, and of others the earlier ones: 3, 5, 7, … */
		assert_int_equal(of_second, 1000);
		vmcs_table_free(&table);
		vmcs_table_free(&parts[0]);
		vmcs_table_free(&parts[1]);
	}
}

static void of_queues_that_saw_a_guest_at_once_the_lowest_did_first(void **state)
{
	for (unsigned first = 0; first < 2; first++) {
		struct vmcs_table table = { 0 };
		struct parts parts;

		make_parts(&parts);
		parts.seen[2].first_host = parts.seen[1].first_host;
		assert_int_equal(vmcs_table_merge(&table, &parts.tables[1 + first]), 0);
		assert_int_equal(vmcs_table_merge(&table, &parts.tables[2 - first]), 0);
		assert_int_equal(seen_of(&table, VMCS)->queue, 1);
		vmcs_table_free(&table);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_host_before_and_after_confirms_an_observation),
		TEST(before_alone_is_good),
		TEST(after_alone_is_good_as_well),
		TEST(an_overflow_in_between_is_a_doubt),
		TEST(an_overflow_after_a_guest_is_a_doubt),
		TEST(a_host_at_odds_with_the_crystal_is_a_doubt),
		TEST(two_ticks_behind_the_crystal_are_no_doubt),
		TEST(two_ticks_ahead_of_the_crystal_are_no_doubt),
		TEST(an_overflow_before_the_host_shows_is_a_doubt),
		TEST(a_host_without_tma_tells_nothing),
		TEST(a_host_that_wakes_up_is_a_doubt),
		TEST(after_a_loss_the_next_host_tells),
		TEST(a_guest_alone_tells_nothing),
		TEST(a_break_ends_what_is_known_of_the_crystal),
		TEST(one_that_agrees_with_none_is_an_outlier),
		TEST(two_that_agree_are_a_change),
		TEST(outliers_in_a_row_are_runs_of_one),
		TEST(what_is_left_over_at_the_end_counts),
		TEST(three_on_a_slope_are_a_scaled_guest),
		TEST(each_vmcs_is_a_guest_of_its_own),
		TEST(a_guest_without_a_vmcs_is_counted),
		TEST(a_guest_without_tma_is_counted_and_tells_nothing),
		TEST(more_vmcss_than_any_machine_has_are_dropped),
		TEST(more_changes_than_any_guest_makes_are_outliers),
		TEST(a_run_is_worth_more_than_outliers),
		TEST(many_may_wait_for_the_host),
		TEST(without_a_pip_the_hosts_tsc_is_known_by_its_value),
		TEST(without_a_pip_a_guests_tsc_is_known_by_its_offset),
		TEST(without_a_pip_any_other_tsc_is_the_one_of_whoever_ran),
		TEST(of_several_offsets_of_a_guest_the_last_one_tells),
		TEST(where_no_guest_was_seen_a_jump_is_the_hosts),
		TEST(what_would_take_the_host_back_is_a_guests),
		TEST(the_first_host_tsc_tells_the_phase_of_the_crystal),
		TEST(a_guest_is_first_seen_when_the_crystal_says),
		TEST(or_about_when_the_recorder_read_it),
		TEST(the_end_of_tracing_dates_a_guest_roughly),
		TEST(the_first_end_that_is_dated_tells),
		TEST(where_nobody_knows_when_it_ended_there_is_no_date),
		TEST(the_host_dates_better_than_the_end),
		TEST(progress_is_told_in_bytes_of_all_queues),
		TEST(who_is_told_to_stop_does_so),
		TEST(an_empty_queue_tells_nothing),
		cmocka_unit_test(queues_are_merged_in_any_order),
		cmocka_unit_test(where_no_queue_knows_when_the_lowest_saw_a_guest_first),
		cmocka_unit_test(the_lowest_of_too_many_vmcss_stay_in_any_order),
		cmocka_unit_test(the_best_of_too_many_runs_stay_in_any_order),
		cmocka_unit_test(of_queues_that_saw_a_guest_at_once_the_lowest_did_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
