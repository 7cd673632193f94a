#include "correlate/tsc_offset_infer.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/crystal.h"
#include "correlate/tsc_patch.h"
#include "correlate/vmcs_collect.h"
#include "decode/base/vec.h"
#include "tests/flow_bench.h"

/* Offsets inferred from the traces of simulated machines, which know them. */

enum { SEEDS = 12, EXACT = 2 };

static bool go_on(void *context, double done)
{
	return true;
}

static struct pt_config config_of(const struct sim_options *options)
{
	struct pt_config config = bench_config(options);

	config.conv = (struct time_conv){ .valid = true, .shift = 31, .mult = 1 << 30 }; /* 2 GHz */
	return config;
}

static void infer_all(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		      struct tsc_offsets *ret)
{
	const struct watch watch = { go_on, NULL };
	struct vmcs_table table = { 0 };

	*ret = (struct tsc_offsets){ 0 };
	assert_int_equal(vmcs_collect(queues, count, config, (struct bytes){ 0 }, &watch, &table),
			 0);
	assert_int_equal(tsc_offset_infer(&table, config, ret), 0);
	vmcs_table_free(&table);
}

static void infer(const struct sim_vm *vm, size_t from, struct tsc_offsets *ret)
{
	struct pt_config config = config_of(&vm->options);
	struct bench_queue queue = { 0 };

	bench_queue_add(&queue, vm->pt.out.data + from, vm->pt.out.size - from, false);
	infer_all(&queue.queue, 1, &config, ret);
	bench_queue_free(&queue);
}

static void assert_offset(const struct sim_vm *vm, uint64_t found, uint64_t truth)
{
	int64_t off = tsc_difference(found, truth);

	if (off > EXACT || off < -EXACT)
		fail_msg("seed %" PRIu64 ": offset %" PRIx64 ", truth is %" PRIx64,
			 vm->options.seed, found, truth);
}

/* Each guest seen has one offset, the true one. */
static void assert_right(const struct sim_vm *vm, const struct tsc_offsets *offsets)
{
	for (size_t i = 0; i < offsets->guests.count; i++) {
		const struct vmcs_offsets *guest = &offsets->guests.items[i];
		unsigned machine = sim_vm_machine(vm, guest->vmcs);

		assert_int_not_equal(machine, 0);
		if (guest->segments.count != 1)
			fail_msg("seed %" PRIu64 ": %zu segments", vm->options.seed,
				 guest->segments.count);
		assert_true(guest->segments.items[0].ratio == TSC_RATIO_ONE);
		assert_offset(vm, guest->segments.items[0].offset,
			      vm->options.tsc_offset[machine - 1]);
	}
}

/* And all that it showed is that of a guest which is known. */
static void assert_truth(const struct sim_vm *vm, const struct tsc_offsets *offsets)
{
	assert_true(tsc_offsets_are_complete(offsets));
	assert_right(vm, offsets);
}

static struct sim_options options_of(uint64_t seed)
{
	struct sim_options options = sim_options_plain(seed);

	options.pt.psb_bytes = 256;
	options.instructions = 40000;
	return options;
}

/* How often the trace shows a guest's TSC, counted over its second half or all of it. */
static size_t guest_psbs(const struct sim_vm *vm, bool second_half)
{
	size_t count = 0;

	for (size_t i = 0; i < vm->pt.psbs.count; i++)
		count += vm->pt.psbs.items[i].nr &&
			 (!second_half || vm->pt.psbs.items[i].retired > vm->truth.count / 2);
	return count;
}

/* Whether there are enough time stamps of guests to see a change, or a slope. */
static bool shows_much(const struct sim_vm *vm)
{
	enum { FEW = 4 };
	size_t later = guest_psbs(vm, true);

	return later > FEW && guest_psbs(vm, false) - later > FEW;
}

static void check(const struct sim_options *options)
{
	struct tsc_offsets offsets;
	struct sim_vm vm;

	sim_vm_run(options, &vm);
	infer(&vm, 0, &offsets);
	assert_true(!guest_psbs(&vm, false) || offsets.guests.count > 0);
	assert_truth(&vm, &offsets);
	tsc_offsets_free(&offsets);
	sim_vm_free(&vm);
}

static void any_offset_is_found(void **state)
{
	static const uint64_t offsets[] = { 0,
					    5,
					    (uint64_t)-1,
					    (uint64_t)-3000000000,
					    (uint64_t)-5000000007, /* the guest's TSC near 0 */
					    (uint64_t)1 << 55,
					    ((uint64_t)1 << 55) + 12345,
					    ((uint64_t)1 << 56) - 5000100000,
					    0x30303014bb3dffd4 };

	for (uint64_t seed = 0; seed < sizeof(offsets) / sizeof(*offsets); seed++) {
		struct sim_options options = options_of(seed);

		options.tsc_offset[0] = offsets[seed];
		check(&options);
	}
}

static void any_crystal_and_period_will_do(void **state)
{
	static const uint32_t ratios[][2] = { { 80, 1 }, { 167, 2 }, { 250, 3 }, { 2, 1 } };

	for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
		struct sim_options options = options_of(seed);

		options.pt.ctc_n = ratios[seed % 4][0];
		options.pt.ctc_d = ratios[seed % 4][1];
		options.pt.mtc_shift = (uint8_t)(seed % 13);
		options.pt.noise = seed % 3 == 0;
		options.pt.cyc = seed % 2;
		check(&options);
	}
}

static void each_of_several_guests_has_its_own(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);

		options.guests = 3;
		options.instructions = 60000;
		check(&options);
	}
}

static void overflows_do_no_harm(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);

		options.overflow = true;
		check(&options);
	}
}

static void a_kernel_only_trace_will_do(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);

		options.user = options.kernel_only = true;
		check(&options);
	}
}

static void the_trace_may_begin_in_the_guest(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		struct tsc_offsets offsets;
		struct sim_vm vm;

		sim_vm_run(&options, &vm);
		for (size_t i = 0; i < vm.pt.psbs.count / 2; i++) {
			if (!vm.pt.psbs.items[i].nr)
				continue;
			infer(&vm, vm.pt.psbs.items[i].position, &offsets);
			assert_truth(&vm, &offsets);
			tsc_offsets_free(&offsets);
		}
		sim_vm_free(&vm);
	}
}

static void cuts_change_nothing(void **state)
{
	struct sim_options options = options_of(3);
	struct tsc_offsets offsets;
	struct pt_config config;
	struct sim_vm vm;

	sim_vm_run(&options, &vm);
	config = config_of(&options);
	for (size_t size = 1; size < 100; size += 7) {
		struct bench_queue queue = { 0 };

		for (size_t at = 0; at < vm.pt.out.size; at += size)
			bench_queue_add(&queue, vm.pt.out.data + at,
					vm.pt.out.size - at < size ? vm.pt.out.size - at : size,
					false);
		infer_all(&queue.queue, 1, &config, &offsets);
		assert_truth(&vm, &offsets);
		tsc_offsets_free(&offsets);
		bench_queue_free(&queue);
	}
	sim_vm_free(&vm);
}

static void lost_data_does_no_harm(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		struct sim_random random = { seed };
		struct bench_queue queue = { 0 };
		struct tsc_offsets offsets;
		struct pt_config config;
		struct sim_vm vm;

		sim_vm_run(&options, &vm);
		config = config_of(&options);
		for (size_t at = 0; at < vm.pt.out.size;) {
			size_t size = 1 + sim_random_below(&random, 8000);

			if (size > vm.pt.out.size - at)
				size = vm.pt.out.size - at;
			bench_queue_add(&queue, vm.pt.out.data + at, size, at > 0);
			at += size + sim_random_below(&random, 2000);
		}
		infer_all(&queue.queue, 1, &config, &offsets);
		assert_right(&vm, &offsets); /* but which VMCS it was may be lost */
		tsc_offsets_free(&offsets);
		bench_queue_free(&queue);
		sim_vm_free(&vm);
	}
}

/* A guest's run on one CPU that never shows the host's TSC, on another that does. */
static void an_offset_learned_on_one_cpu_holds_on_another(void **state)
{
	struct sim_options options = options_of(1);
	struct bench_queue queues[2] = { 0 };
	struct aux_queue both[2];
	struct tsc_offsets offsets;
	struct pt_config config;
	struct sim_vm vm;

	sim_vm_run(&options, &vm);
	config = config_of(&options);
	for (size_t i = 0; i + 1 < vm.pt.psbs.count; i++) {
		const struct sim_psb *psb = &vm.pt.psbs.items[i];

		if (!psb->nr)
			continue;
		bench_queue_add(&queues[0], vm.pt.out.data + psb->position,
				psb[1].position - psb->position, true);
		break;
	}
	bench_queue_add(&queues[1], vm.pt.out.data, vm.pt.out.size, false);
	both[0] = queues[0].queue;
	both[1] = queues[1].queue;
	infer_all(both, 2, &config, &offsets);
	assert_truth(&vm, &offsets);
	assert_true(offsets.guests.items[0].packets > 1);
	assert_int_equal(offsets.guests.items[0].queue, 1);
	tsc_offsets_free(&offsets);
	bench_queue_free(&queues[0]);
	bench_queue_free(&queues[1]);
	sim_vm_free(&vm);
}

/* What one queue tells of a guest that it saw at `host`. */
static void tell(struct vmcs_table *table, size_t queue, uint64_t host)
{
	struct vmcs_seen seen = {
		.vmcs = 7, .queue = queue, .first_host = host, .rough = { true, host, 1, 2, queue }
	};

	table->phase = (struct tsc_phase){ true, host, (uint16_t)host };
	assert_true(vec_push(&table->seen, seen));
}

static void queues_may_come_in_any_order(void **state)
{
	static const size_t orders[2][2] = { { 0, 1 }, { 1, 0 } };

	for (size_t i = 0; i < 2; i++) {
		const struct tsc_pair pair = { 700, 1 };
		const struct tsc_run run = tsc_run_begin(&pair, TSC_GOOD, 0);
		struct vmcs_table all = { 0 }, one[2] = { 0 };
		const struct pt_config config = { 0 };
		struct tsc_offsets offsets = { 0 };

		tell(&one[0], 0, 700);
		tell(&one[1], 1, 500);
		assert_true(vec_push(&one[0].seen.items[0].runs, run));
		assert_int_equal(vmcs_table_merge(&all, &one[orders[i][0]]), 0);
		assert_int_equal(vmcs_table_merge(&all, &one[orders[i][1]]), 0);
		assert_int_equal(all.seen.items[0].queue, 1);
		assert_int_equal(all.seen.items[0].first_host, 500);
		assert_int_equal(all.seen.items[0].rough.queue, 0);
		assert_int_equal(all.phase.host, 500);
		assert_int_equal(tsc_offset_infer(&all, &config, &offsets), 0);
		assert_int_equal(offsets.guests.items[0].segments.items[0].host, 700);
		assert_int_equal(offsets.guests.items[0].queue, 0);
		tsc_offsets_free(&offsets);
		vmcs_table_free(&one[0]);
		vmcs_table_free(&one[1]);
		vmcs_table_free(&all);
	}
}

/* 2 ticks of the TSC are one of the crystal. */
static const struct pt_config by_hand = { .ctc_n = 2,
					  .ctc_d = 1,
					  .conv = { .valid = true, .shift = 31, .mult = 1 << 30 } };

enum { LOST = 2 * CRYSTAL_TMA_RANGE }; /* as much as a TMA does not show, in ticks of the TSC */

/* `count` observations of the same offset. */
static struct tsc_run run_of(uint64_t host, uint64_t offset, uint64_t count,
			     enum tsc_quality quality)
{
	const struct tsc_pair pair = { host, (host + offset) & PT_TSC_MASK };
	struct tsc_run run = tsc_run_begin(&pair, quality, 0);

	while (run.count < count)
		assert_true(tsc_run_add(&run, &pair, quality, 64));
	return run;
}

/* What becomes of these runs of one guest. */
static struct vmcs_offsets infer_runs(const struct tsc_run *runs, size_t count,
				      struct tsc_offsets *ret)
{
	struct vmcs_seen seen = { .vmcs = 7 };
	struct vmcs_table table = { 0 };

	for (size_t i = 0; i < count; i++)
		assert_true(vec_push(&seen.runs, runs[i]));
	assert_true(vec_push(&table.seen, seen));
	*ret = (struct tsc_offsets){ 0 };
	assert_int_equal(tsc_offset_infer(&table, &by_hand, ret), 0);
	vmcs_table_free(&table);
	return ret->guests.items[0];
}

static void an_outlier_parts_nothing(void **state)
{
	const struct tsc_run runs[] = { run_of(1000, 500, 2, TSC_GOOD),
					run_of(2000, 90000, 1, TSC_GOOD),
					run_of(3000, 501, 2, TSC_GOOD) };
	struct tsc_offsets offsets;
	struct vmcs_offsets guest = infer_runs(runs, 3, &offsets);

	assert_int_equal(guest.outliers, 1);
	assert_int_equal(guest.segments.count, 1);
	assert_int_equal(guest.segments.items[0].observations, 4);
	assert_int_equal(guest.segments.items[0].residual, 1);
	tsc_offsets_free(&offsets);
}

static void lost_ticks_of_the_crystal_are_no_change(void **state)
{
	static const struct {
		int64_t apart;
		enum tsc_quality quality;
		size_t segments;
	} cases[] = {
		{ LOST, TSC_GOOD, 1 },
		{ -LOST, TSC_GOOD, 1 },
		{ -5 * LOST + 3, TSC_DOUBTFUL, 1 },
		{ 1024 * LOST - 3, TSC_GOOD, 1 },
		{ 1025 * LOST, TSC_GOOD, 2 }, /* minutes without a TSC packet */
		{ LOST, TSC_CONFIRMED, 2 },
		{ LOST / 2, TSC_GOOD, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tsc_run runs[] = {
			run_of(1000, 500, 3, TSC_CONFIRMED),
			run_of(2000, (uint64_t)(500 + cases[i].apart), 2, cases[i].quality),
		};
		struct tsc_offsets offsets;
		struct vmcs_offsets guest = infer_runs(runs, 2, &offsets);

		assert_int_equal(guest.segments.count, cases[i].segments);
		assert_int_equal(guest.lost_ticks, cases[i].segments == 1 ? 2 : 0);
		assert_int_equal(guest.segments.items[0].offset, 500);
		tsc_offsets_free(&offsets);
	}
}

static void confidence_needs_more_than_one_witness(void **state)
{
	static const struct {
		uint64_t count;
		enum tsc_quality quality;
		enum tsc_confidence expected;
	} cases[] = {
		{ 1, TSC_DOUBTFUL, TSC_LOW },    { 2, TSC_DOUBTFUL, TSC_LOW },
		{ 3, TSC_DOUBTFUL, TSC_MEDIUM }, { 1, TSC_GOOD, TSC_MEDIUM },
		{ 2, TSC_GOOD, TSC_HIGH },       { 1, TSC_CONFIRMED, TSC_HIGH },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tsc_run run = run_of(1000, 500, cases[i].count, cases[i].quality);
		struct tsc_offsets offsets;
		struct vmcs_offsets guest = infer_runs(&run, 1, &offsets);

		assert_int_equal(guest.segments.items[0].confidence, cases[i].expected);
		tsc_offsets_free(&offsets);
	}
}

/* KVM makes it from two whole numbers of kHz; the host has 2,000,000. */
static void a_slope_that_leaves_one_frequency_is_exact(void **state)
{
	struct tsc_run run = run_of(1000, 500, 2, TSC_GOOD);
	const uint64_t exact = (uint64_t)(((unsigned __int128)1800001 << 48) / 2000000);
	struct tsc_offsets offsets;
	struct vmcs_offsets guest;

	run.slope_low = 1800000.9 / 2000000 - 1;
	run.slope_high = 1800001.2 / 2000000 - 1;
	guest = infer_runs(&run, 1, &offsets);
	assert_true(guest.segments.items[0].ratio == exact);
	tsc_offsets_free(&offsets);
	run.slope_high = 1800002.3 / 2000000 - 1;
	guest = infer_runs(&run, 1, &offsets);
	assert_true(guest.segments.items[0].ratio > exact);
	assert_true(guest.segments.items[0].ratio < exact + (exact >> 20));
	tsc_offsets_free(&offsets);
}

/* The host's time is off by some crystal ticks, which the host's phase tells. */
static void a_rough_time_is_made_exact_by_the_crystal(void **state)
{
	static const int64_t away[] = { 100000, -100000, 5 * LOST + 7000, -9 * LOST - 7000 };
	static const int64_t off[] = { 0, 3000, -3000 };

	for (size_t i = 0; i < 12; i++) {
		const uint64_t host = (uint64_t)1 << 40;
		struct tsc_rough rough = { true, host + (uint64_t)off[i % 3], host + 500, 0x123,
					   0 };
		struct vmcs_seen seen = { .vmcs = 7, .rough = rough };
		struct vmcs_table table = { 0 };
		struct tsc_offsets offsets = { 0 };
		const struct tsc_segment *segment;

		table.phase = (struct tsc_phase){ true, host + (uint64_t)away[i % 4],
						  (uint16_t)(0x123 + away[i % 4] / 2) };
		assert_true(vec_push(&table.seen, seen));
		assert_int_equal(tsc_offset_infer(&table, &by_hand, &offsets), 0);
		segment = offsets.guests.items[0].segments.items;
		assert_int_equal(segment->offset, 500);
		assert_int_equal(segment->confidence, TSC_MEDIUM);
		tsc_offsets_free(&offsets);
		table.phase.valid = false;
		assert_int_equal(tsc_offset_infer(&table, &by_hand, &offsets), 0);
		segment = offsets.guests.items[0].segments.items;
		assert_int_equal(segment->offset, (uint64_t)(500 - off[i % 3]) & PT_TSC_MASK);
		assert_int_equal(segment->confidence, TSC_LOW);
		tsc_offsets_free(&offsets);
		vmcs_table_free(&table);
	}
}

static void assert_changed(const struct sim_vm *vm, const struct sim_options *options,
			   const struct vmcs_offsets *guest, size_t count)
{
	const struct tsc_segment *segments = guest->segments.items;

	if (guest->segments.count != count)
		fail_msg("seed %" PRIu64 ": %zu segments, %zu of %zu later", vm->options.seed,
			 guest->segments.count, guest_psbs(vm, true), guest_psbs(vm, false));
	assert_offset(vm, segments[0].offset, options->tsc_offset[0]);
	assert_offset(vm, segments[count - 1].offset, options->tsc_changed);
	for (size_t i = 1; i < count; i++)
		assert_true(segments[i - 1].to == segments[i].from);
}

static void a_change_is_two_segments(void **state)
{
	static const uint64_t changes[] = { 400, (uint64_t)-100000, 12345678901, 0 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		const struct vmcs_offsets *guest;
		struct tsc_offsets offsets;
		struct sim_vm vm;

		options.instructions = 60000;
		options.tsc_change = 30000;
		options.tsc_changed = options.tsc_offset[0] + changes[seed % 4];
		sim_vm_run(&options, &vm);
		infer(&vm, 0, &offsets);
		guest = &offsets.guests.items[0];
		if (shows_much(&vm))
			assert_changed(&vm, &options, guest, changes[seed % 4] ? 2 : 1);
		tsc_offsets_free(&offsets);
		sim_vm_free(&vm);
	}
}

static void a_scaled_tsc_has_a_ratio(void **state)
{
	static const uint64_t khz[] = { 1800000, 2200000, 1666666, 3000001, 2100000 };

	for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		const struct vmcs_offsets *guest;
		struct tsc_offsets offsets;
		struct sim_vm vm;

		options.instructions = 100000;
		options.tsc_ratio = (uint64_t)(((unsigned __int128)khz[seed % 5] << 48) / 2000000);
		sim_vm_run(&options, &vm);
		infer(&vm, 0, &offsets);
		guest = &offsets.guests.items[0];
		if (shows_much(&vm) && guest->segments.count != 1)
			fail_msg("seed %" PRIu64 ": %zu segments", seed, guest->segments.count);
		if (shows_much(&vm) &&
		    fabs((double)guest->segments.items[0].ratio / (double)options.tsc_ratio - 1) >
			    1e-4)
			fail_msg("seed %" PRIu64 ": ratio %" PRIx64, seed,
				 guest->segments.items[0].ratio);
		tsc_offsets_free(&offsets);
		sim_vm_free(&vm);
	}
}

/* Every guest time stamp, translated, is the host's: it never runs back, and stays within what
 * observations differ by. */
static void assert_translated(const struct sim_vm *vm, const struct tsc_offsets *offsets)
{
	struct pt_config config = config_of(&vm->options);
	struct bench_queue queue = { 0 };
	struct tsc_patches patches;
	struct tsc_patch patch;
	uint64_t last = 0, count = 0;

	bench_queue_add(&queue, vm->pt.out.data, vm->pt.out.size, false);
	tsc_patches_init(&patches, offsets, &queue.queue, &config, (struct bytes){ 0 });
	for (; !tsc_patches_next(&patches, &patch); count++) {
		if (patch.value + EXACT < last)
			fail_msg("seed %" PRIu64 ": %" PRIu64 " after %" PRIu64, vm->options.seed,
				 patch.value, last);
		assert_true(patch.value >= vm->pt.tsc_at_start && patch.value <= vm->pt.tsc + 200);
		last = patch.value;
	}
	assert_true(!patches.left);
	assert_int_equal(count > 0, guest_psbs(vm, false) > 0);
	bench_queue_free(&queue);
}

static void translated_time_is_the_hosts(void **state)
{
	for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		struct tsc_offsets offsets;
		struct sim_vm vm;

		options.instructions = 60000;
		options.overflow = seed % 2;
		if (seed % 3 == 0)
			options.tsc_change = 30000;
		if (seed % 3 == 1)
			options.tsc_ratio = (uint64_t)(1.1 * (double)TSC_RATIO_ONE);
		options.tsc_changed = seed;
		sim_vm_run(&options, &vm);
		infer(&vm, 0, &offsets);
		if (shows_much(&vm))
			assert_translated(&vm, &offsets);
		tsc_offsets_free(&offsets);
		sim_vm_free(&vm);
	}
}

static void a_host_alone_has_nothing(void **state)
{
	struct sim_options options = options_of(1);
	struct tsc_offsets offsets;
	struct sim_vm vm;

	options.guests = 0;
	sim_vm_run(&options, &vm);
	infer(&vm, 0, &offsets);
	assert_int_equal(offsets.guests.count, 0);
	assert_true(offsets.packets > 0 && tsc_offsets_are_none(&offsets));
	tsc_offsets_free(&offsets);
	sim_vm_free(&vm);
}

static void without_tma_there_is_a_guest_but_no_offset(void **state)
{
	struct sim_options options = options_of(1);
	struct tsc_offsets offsets;
	struct sim_vm vm;

	options.pt.mtc = false;
	sim_vm_run(&options, &vm);
	infer(&vm, 0, &offsets);
	assert_int_equal(offsets.guests.count, 1);
	assert_false(tsc_offsets_are_complete(&offsets));
	assert_true(offsets.guests.items[0].without_tma == offsets.guests.items[0].packets);
	tsc_offsets_free(&offsets);
	sim_vm_free(&vm);
}

static void damage_is_survived(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim_options options = options_of(seed);
		struct sim_random random = { seed };
		struct tsc_offsets offsets;
		struct sim_vm vm;

		sim_vm_run(&options, &vm);
		for (int i = 0; i < 200; i++)
			vm.pt.out.data[sim_random_below(&random, (unsigned)vm.pt.out.size)] =
				(uint8_t)sim_random_next(&random);
		infer(&vm, 0, &offsets);
		tsc_offsets_free(&offsets);
		sim_vm_free(&vm);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_offset_is_found),
		cmocka_unit_test(any_crystal_and_period_will_do),
		cmocka_unit_test(each_of_several_guests_has_its_own),
		cmocka_unit_test(overflows_do_no_harm),
		cmocka_unit_test(a_kernel_only_trace_will_do),
		cmocka_unit_test(the_trace_may_begin_in_the_guest),
		cmocka_unit_test(cuts_change_nothing),
		cmocka_unit_test(lost_data_does_no_harm),
		cmocka_unit_test(an_offset_learned_on_one_cpu_holds_on_another),
		cmocka_unit_test(queues_may_come_in_any_order),
		cmocka_unit_test(an_outlier_parts_nothing),
		cmocka_unit_test(lost_ticks_of_the_crystal_are_no_change),
		cmocka_unit_test(confidence_needs_more_than_one_witness),
		cmocka_unit_test(a_slope_that_leaves_one_frequency_is_exact),
		cmocka_unit_test(a_rough_time_is_made_exact_by_the_crystal),
		cmocka_unit_test(a_change_is_two_segments),
		cmocka_unit_test(a_scaled_tsc_has_a_ratio),
		cmocka_unit_test(translated_time_is_the_hosts),
		cmocka_unit_test(a_host_alone_has_nothing),
		cmocka_unit_test(without_tma_there_is_a_guest_but_no_offset),
		cmocka_unit_test(damage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
