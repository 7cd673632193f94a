#include "decode/flow/pt_flow.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

/* Properties of the flow over simulated machines. A failure names the seed that shows it. */

enum { SEEDS = 60 };

struct bench {
	struct sim_vm vm;
	struct pt_config config;
	struct machines machines;
};

static void set_up(struct bench *bench, const struct sim_options *options)
{
	sim_vm_run(options, &bench->vm);
	bench->config = bench_config(options);
	assert_true(bench_machines(&bench->vm, &bench->machines));
}

static void tear_down(struct bench *bench)
{
	machines_free(&bench->machines);
	sim_vm_free(&bench->vm);
}

/* Decode part of the trace, cut in `pieces` at random. */
static void decode_cut(struct bench *bench, size_t from, unsigned pieces, uint64_t min_size,
		       struct bench_list *ret)
{
	const struct pt_bytes *trace = &bench->vm.pt.out;
	struct sim_random random = { bench->vm.options.seed + pieces };
	struct bench_queue queue = { 0 };

	for (; pieces > 1; pieces--) {
		size_t most = (trace->size - from) / pieces * 2;
		size_t size = most ? sim_random_below(&random, (unsigned)most) : 0;

		bench_queue_add(&queue, trace->data + from, size, false);
		from += size;
	}
	bench_queue_add(&queue, trace->data + from, trace->size - from, false);
	bench_decode(&queue.queue, &bench->config, &bench->machines, min_size, ret);
	bench_queue_free(&queue);
}

static bool same(const struct bench_item *item, const struct sim_truth *truth)
{
	return !item->is_gap && item->ip == truth->ip && item->nr == (truth->machine != 0);
}

static void fail_at(const struct bench *bench, const struct bench_list *list, size_t i, size_t t)
{
	const struct bench_item *item = i < list->count ? &list->items[i] : NULL;
	const struct sim_truth *truth =
		t < bench->vm.truth.count ? &bench->vm.truth.items[t] : NULL;

	fail_msg("seed %" PRIu64 ": item %zu is %s %" PRIx64 "%s, truth %zu of %zu is %" PRIx64
		 "%s (known %d)",
		 bench->vm.options.seed, i,
		 !item          ? "missing"
		 : item->is_gap ? gap_text(item->gap)
				: "insn",
		 item ? item->ip : 0, item && item->nr ? " guest" : "", t, bench->vm.truth.count,
		 truth ? truth->ip : 0, truth && truth->machine ? " guest" : "",
		 truth ? (int)truth->known : -1);
}

/* The list from item `i` on is the truth from `t` on; gaps stand where the truth is not known. */
static void assert_truth(const struct bench *bench, const struct bench_list *list, size_t i,
			 size_t t)
{
	const struct sim_truth *truth = bench->vm.truth.items;
	size_t count = bench->vm.truth.count;

	for (; i < list->count; i++) {
		if (list->items[i].is_gap && list->items[i].gap == GAP_OVERFLOW) {
			while (t < count && truth[t].known != SIM_KNOWN)
				t++;
			continue;
		}
		if (t == count || !same(&list->items[i], &truth[t]) || truth[t].known == SIM_LOST)
			fail_at(bench, list, i, t);
		t++;
	}
	while (t < count && truth[t].known != SIM_KNOWN)
		t++;
	if (t < count)
		fail_at(bench, list, i, t);
}

static void assert_same_lists(const struct bench *bench, const struct bench_list *a,
			      const struct bench_list *b)
{
	if (a->count != b->count)
		fail_msg("seed %" PRIu64 ": %zu items, and then %zu", bench->vm.options.seed,
			 a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		if (a->items[i].ip != b->items[i].ip || a->items[i].nr != b->items[i].nr ||
		    a->items[i].is_gap != b->items[i].is_gap || a->items[i].tsc != b->items[i].tsc)
			fail_msg("seed %" PRIu64 ": item %zu differs", bench->vm.options.seed, i);
}

static void the_flow_is_the_truth(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list list;
		struct bench bench;

		set_up(&bench, &options);
		decode_cut(&bench, 0, 1, 0, &list);
		assert_truth(&bench, &list, 0, 0);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

static void cuts_and_segments_change_nothing(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list whole, list;
		struct bench bench;

		options.overflow = seed & 1;
		set_up(&bench, &options);
		decode_cut(&bench, 0, 1, UINT64_MAX, &whole);
		for (unsigned pieces = 2; pieces < 2000; pieces *= 7) {
			decode_cut(&bench, 0, pieces, pieces * 100, &list);
			assert_same_lists(&bench, &whole, &list);
			bench_list_free(&list);
		}
		bench_list_free(&whole);
		tear_down(&bench);
	}
}

/* Who tries what might have been patched goes back and forth over many ends of spans. */
static void cuts_change_nothing_where_code_was_patched(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list whole, cut;
		struct bench bench;

		options.labels = true;
		options.label_start = 20;
		set_up(&bench, &options);
		decode_cut(&bench, 0, 1, 1 << 20, &whole);
		decode_cut(&bench, 0, (unsigned)(bench.vm.pt.out.size / 24), 1 << 20, &cut);
		assert_same_lists(&bench, &whole, &cut);
		bench_list_free(&whole);
		bench_list_free(&cut);
		tear_down(&bench);
	}
}

/* A host TSC is known once the host has shown it: a start in a guest is right but for its time. */
static void a_later_start_yields_a_suffix(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench bench;

		set_up(&bench, &options);
		for (size_t k = 1; k < bench.vm.pt.psbs.count; k += 1 + k / 4) {
			const struct sim_psb *psb = &bench.vm.pt.psbs.items[k];
			struct bench_list list;

			decode_cut(&bench, (size_t)psb->position, 1, 0, &list);
			assert_truth(&bench, &list, 0, psb->retired);
			bench_list_free(&list);
		}
		tear_down(&bench);
	}
}

/* Where a trace starts between PSBs, no more is lost than up to the next one. */
static void a_start_anywhere_is_in_sync_at_the_next_psb(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list list;
		const struct sim_psb *psb;
		struct bench bench;
		size_t known;

		set_up(&bench, &options);
		psb = &bench.vm.pt.psbs.items[bench.vm.pt.psbs.count / 2];
		decode_cut(&bench, psb->position - 100, 1, 0, &list);
		known = bench.vm.truth.count - psb->retired;
		assert_true(list.count >= known);
		assert_truth(&bench, &list, list.count - known, psb->retired);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

static void the_form_of_packets_does_not_matter(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		for (unsigned form = 0; form < 8; form++) {
			struct sim_options options = sim_options_plain(seed);
			struct bench_list list;
			struct bench bench;

			options.guests = SIM_GUESTS;
			options.instructions = 6000;
			options.user = true;
			options.pt.long_tnt = form & 1;
			options.pt.compress_returns = form & 2;
			options.pt.defer_tips = form & 4;
			set_up(&bench, &options);
			decode_cut(&bench, 0, 1, 0, &list);
			assert_int_equal(list.gaps, 0);
			assert_truth(&bench, &list, 0, 0);
			bench_list_free(&list);
			tear_down(&bench);
		}
	}
}

/* Without a PIP into non-root mode before it, a TIP is not the VM entry's. */
static void failed_entries_fall_through(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list list;
		struct bench bench;

		options.guests = SIM_GUESTS;
		options.failed_entries = true;
		set_up(&bench, &options);
		decode_cut(&bench, 0, 1, 0, &list);
		assert_truth(&bench, &list, 0, 0);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

static void overflows_lose_only_what_they_must(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list list;
		struct bench bench;

		options.overflow = true;
		set_up(&bench, &options);
		decode_cut(&bench, 0, 1, 0, &list);
		assert_truth(&bench, &list, 0, 0);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

/* The recorder loses from the middle of a packet to a PSB: all up to the former PSB is there, then
 * one gap (two where the loss took a deferred TIP), then all from the later one. */
static void lost_data_is_a_gap(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_queue queue = { 0 };
		const struct sim_psb *psbs;
		struct bench_list list;
		struct bench bench;
		size_t i = 0, from;

		set_up(&bench, &options);
		psbs = bench.vm.pt.psbs.items;
		if (bench.vm.pt.psbs.count < 3) {
			tear_down(&bench);
			continue;
		}
		from = (size_t)psbs[2].position;
		bench_queue_add(&queue, bench.vm.pt.out.data, (size_t)psbs[1].position + 77, false);
		bench_queue_add(&queue, bench.vm.pt.out.data + from, bench.vm.pt.out.size - from,
				true);
		bench_decode(&queue.queue, &bench.config, &bench.machines, 0, &list);
		assert_true(list.gaps > 0);
		while (!list.items[i].is_gap) {
			assert_true(same(&list.items[i], &bench.vm.truth.items[i]));
			i++;
		}
		assert_true(i >= psbs[1].retired && i <= psbs[2].retired);
		i += list.gaps;
		assert_int_equal(list.items[i - 1].gap, GAP_LOST);
		assert_truth(&bench, &list, i, psbs[2].retired);
		bench_list_free(&list);
		bench_queue_free(&queue);
		tear_down(&bench);
	}
}

/* Branches are dated by the packet that tells of them, so let them not wait for long. */
static void time_follows_the_host_and_never_runs_back(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench_list list;
		struct bench bench;
		uint64_t most, last = 0;

		options.pt.tsc = options.pt.mtc = options.pt.cyc = true;
		options.pt.long_tnt = options.pt.defer_tips = false;
		options.pt.cyc_threshold = 0;
		options.pt.mtc_shift = 3;
		set_up(&bench, &options);
		most = 3 * (options.pt.ctc_n << options.pt.mtc_shift) / options.pt.ctc_d;
		decode_cut(&bench, 0, 1, 0, &list);
		assert_truth(&bench, &list, 0, 0);
		for (size_t i = 0; i < list.count; i++) {
			uint64_t truth = bench.vm.truth.items[i].tsc, tsc = list.items[i].tsc;

			if (tsc < last || tsc + most < truth || tsc > truth + most)
				fail_msg("seed %" PRIu64 ": item %zu at %" PRIu64
					 ", truth %" PRIu64,
					 seed, i, tsc, truth);
			last = tsc;
		}
		bench_list_free(&list);
		tear_down(&bench);
	}
}

/* Damaged bytes cost what depends on them, and nothing from the next PSB on (a packet made by
 * damage may reach into a PSB that follows at once). */
static void damage_ends_at_the_next_psb(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS * 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct sim_random random = { seed };
		const struct sim_psb *psb;
		struct bench_list list;
		struct bench bench;
		size_t known;

		options.instructions = 8000;
		set_up(&bench, &options);
		psb = &bench.vm.pt.psbs.items[bench.vm.pt.psbs.count / 2];
		for (unsigned n = 1 + sim_random_below(&random, 20);
		     n && psb->position > PT_PACKET_MAX; n--) {
			size_t at =
				sim_random_below(&random, (unsigned)psb->position - PT_PACKET_MAX);

			bench.vm.pt.out.data[at] = (uint8_t)sim_random_next(&random);
		}
		decode_cut(&bench, 0, 1, 0, &list);
		known = bench.vm.truth.count - psb->retired;
		assert_true(list.count >= known);
		assert_truth(&bench, &list, list.count - known, psb->retired);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

/* Any bytes at all: the flow ends, and says something for each stretch of them. */
static void noise_is_survived(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct sim_random random = { seed };
		struct bench_list list;
		struct bench bench;

		options.instructions = 2000;
		set_up(&bench, &options);
		for (size_t i = 0; i < bench.vm.pt.out.size; i++)
			if (sim_random_once_in(&random, 1 + (unsigned)seed))
				bench.vm.pt.out.data[i] = (uint8_t)sim_random_next(&random);
		decode_cut(&bench, 0, 3, 0, &list);
		bench_list_free(&list);
		tear_down(&bench);
	}
}

/* Guest and host have different code at the same addresses; nothing tells but NR. */
static void without_a_guests_code_the_host_is_whole(void **state)
{
	struct sim_options options = sim_options_plain(3);
	struct bench_list list;
	struct bench bench;
	size_t host = 0, found = 0;

	set_up(&bench, &options);
	bench.machines.guest_count = 0;
	decode_cut(&bench, 0, 1, 0, &list);
	bench.machines.guest_count = 1;
	for (size_t i = 0; i < bench.vm.truth.count; i++)
		host += !bench.vm.truth.items[i].machine;
	for (size_t i = 0; i < list.count; i++) {
		found += !list.items[i].is_gap && !list.items[i].nr;
		if (list.items[i].is_gap)
			assert_int_equal(list.items[i].gap, GAP_NO_CODE);
	}
	assert_int_equal(found, host);
	bench_list_free(&list);
	tear_down(&bench);
}

/* The trace some times over, so that there is a next time for everything: what is remembered of
 * stretches of code counts as the code does. */
static void assert_counted(const struct bench *bench)
{
	const struct pt_bytes *trace = &bench->vm.pt.out;
	struct bench_count listed, counted;
	struct bench_queue queue = { 0 };

	for (int i = 0; i < 4; i++)
		bench_queue_add(&queue, trace->data, trace->size, i > 0);
	bench_count(&queue.queue, &bench->config, &bench->machines, false, &listed);
	bench_count(&queue.queue, &bench->config, &bench->machines, true, &counted);
	assert_true(listed.insns >= bench->vm.truth.count);
	if (counted.insns != listed.insns)
		fail_msg("seed %" PRIu64 ": %" PRIu64 " instructions, counted %" PRIu64,
			 bench->vm.options.seed, listed.insns, counted.insns);
	assert_same_lists(bench, &listed.gaps, &counted.gaps);
	bench_list_free(&listed.gaps);
	bench_list_free(&counted.gaps);
	bench_queue_free(&queue);
}

static void assert_forgotten(struct bench *bench)
{
	const struct pt_bytes *trace = &bench->vm.pt.out;
	struct bench_count kept, forgotten;
	struct bench_queue queue = { 0 };

	bench_queue_add(&queue, trace->data, trace->size, false);
	bench_count(&queue.queue, &bench->config, &bench->machines, true, &kept);
	bench_count_forgetting(&queue.queue, &bench->config, &bench->machines, &forgotten);
	assert_int_equal(kept.insns, forgotten.insns);
	assert_same_lists(bench, &kept.gaps, &forgotten.gaps);
	bench_list_free(&kept.gaps);
	bench_list_free(&forgotten.gaps);
	bench_queue_free(&queue);
}

static void code_is_forgotten_and_found_again(void **state)
{
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench bench;

		options.overflow = seed == 2;
		options.labels = seed & 1;
		options.label_start = options.label_flips = seed == 1 ? 20 : 0;
		set_up(&bench, &options);
		assert_forgotten(&bench);
		tear_down(&bench);
	}
}

static void counting_is_listing(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct bench bench;

		options.overflow = !(seed % 3);
		options.range_filter = seed % 4 == 1;
		options.labels = seed & 1;
		options.label_start = options.label_flips = seed % 8 == 1 ? 20 : 0;
		set_up(&bench, &options);
		assert_counted(&bench);
		tear_down(&bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_flow_is_the_truth),
		cmocka_unit_test(cuts_and_segments_change_nothing),
		cmocka_unit_test(cuts_change_nothing_where_code_was_patched),
		cmocka_unit_test(a_later_start_yields_a_suffix),
		cmocka_unit_test(a_start_anywhere_is_in_sync_at_the_next_psb),
		cmocka_unit_test(the_form_of_packets_does_not_matter),
		cmocka_unit_test(failed_entries_fall_through),
		cmocka_unit_test(overflows_lose_only_what_they_must),
		cmocka_unit_test(lost_data_is_a_gap),
		cmocka_unit_test(time_follows_the_host_and_never_runs_back),
		cmocka_unit_test(damage_ends_at_the_next_psb),
		cmocka_unit_test(noise_is_survived),
		cmocka_unit_test(without_a_guests_code_the_host_is_whole),
		cmocka_unit_test(counting_is_listing),
		cmocka_unit_test(code_is_forgotten_and_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
