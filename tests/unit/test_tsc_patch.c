#include "correlate/tsc_patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/pt/pt_clock.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* Packets by hand, and what is to be written where. Whole traces are in test_offset_apply.c. */

enum { VMCS = 3, CTC = 100, BASIC = 4, TSC_ITEM = 2 };

static const uint64_t host = 1000000000000;

/* The host's time, and right after it a PEBS record of a guest that shows `tsc`. */
static void put_trace(struct pt_bytes *trace, uint64_t tsc, uint8_t tsc_bytes)
{
	pt_put_psb(trace);
	pt_put_value(trace, PT_TSC, host);
	pt_put(trace, &(struct pt_packet){ .kind = PT_TMA, .payload = CTC });
	pt_put(trace, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x1000 });
	pt_put_value(trace, PT_PSBEND, 0);
	pt_put(trace, &(struct pt_packet){ .kind = PT_PIP, .flag = true, .payload = 0x2000 });
	pt_put_value(trace, PT_VMCS, VMCS);
	pt_put(trace, &(struct pt_packet){ .kind = PT_BBP, .payload = BASIC, .count = tsc_bytes });
	pt_put(trace, &(struct pt_packet){ .kind = PT_BIP,
					   .size = (uint8_t)(1 + tsc_bytes),
					   .payload = tsc,
					   .count = TSC_ITEM });
	pt_put(trace, &(struct pt_packet){ .kind = PT_BEP });
}

/* A guest whose offset changed long before. */
static void set_offsets(struct tsc_offsets *offsets, uint64_t before, uint64_t after)
{
	const uint64_t change = host / 2;
	const struct tsc_segment first = {
		.to = change, .offset = before, .ratio = TSC_RATIO_ONE, .host = 1
	};
	const struct tsc_segment second = { .from = change,
					    .to = UINT64_MAX,
					    .offset = after,
					    .ratio = TSC_RATIO_ONE,
					    .host = host };
	struct vmcs_offsets guest = { .vmcs = VMCS };

	assert_true(vec_push(&guest.segments, first) && vec_push(&guest.segments, second));
	assert_true(vec_push(&offsets->guests, guest));
}

static void assert_patched(uint64_t before, uint64_t after, uint8_t tsc_bytes)
{
	const uint64_t mask = tsc_bytes < 8 ? ((uint64_t)1 << tsc_bytes * 8) - 1 : UINT64_MAX;
	struct tsc_offsets offsets = { 0 };
	struct bench_queue queue = { 0 };
	struct pt_bytes trace = { 0 };
	struct tsc_patches patches;
	struct tsc_patch patch;

	put_trace(&trace, (host + after) & mask, tsc_bytes);
	set_offsets(&offsets, before, after);
	bench_queue_add(&queue, trace.data, trace.size, false);
	tsc_patches_init(&patches, &offsets, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	assert_int_equal(tsc_patches_next(&patches, &patch), 0);
	assert_int_equal(patch.size, tsc_bytes);
	assert_int_equal(patch.value, host & mask);
	assert_int_equal(load_le(trace.data + patch.position, tsc_bytes), (host + after) & mask);
	assert_int_equal(tsc_patches_next(&patches, &patch), -PTVM_END);
	bench_queue_free(&queue);
	tsc_offsets_free(&offsets);
	pt_bytes_free(&trace);
}

static void a_pebs_record_gets_the_hosts_time(void **state)
{
	assert_patched(0, 12345, 8);
	assert_patched(0, 12345, 4);
}

/* Half of a time stamp says which it is only beside the offset of its time. */
static void half_a_time_stamp_goes_by_the_offset_of_its_time(void **state)
{
	assert_patched(0, (uint64_t)3 << 30, 4);
	assert_patched((uint64_t)5 << 30, 1, 4);
}

/* A TSC packet right behind a PIP, which may be the last that was not lost: what becomes of `tsc`.
 */
static uint64_t translated(bool in_guest, uint64_t tsc, uint64_t offset)
{
	struct tsc_offsets offsets = { 0 };
	struct bench_queue queue = { 0 };
	struct pt_bytes trace = { 0 };
	struct tsc_patches patches;
	struct tsc_patch patch;

	pt_put_psb_plus(&trace, &(struct pt_psb_plus){ .vmcs = VMCS, .tsc = host, .ctc = CTC });
	pt_put(&trace, &(struct pt_packet){ .kind = PT_PIP, .flag = in_guest });
	pt_put_value(&trace, PT_TSC, tsc & PT_TSC_MASK);
	pt_put_tma(&trace, CTC + 8, 0);
	set_offsets(&offsets, offset, offset);
	bench_queue_add(&queue, trace.data, trace.size, false);
	tsc_patches_init(&patches, &offsets, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	if (!tsc_patches_next(&patches, &patch)) {
		assert_int_equal(load_le(trace.data + patch.position, patch.size),
				 tsc & PT_TSC_MASK);
		assert_int_equal(tsc_patches_next(&patches, &patch), -PTVM_END);
		tsc = patch.value;
	}
	bench_queue_free(&queue);
	tsc_offsets_free(&offsets);
	pt_bytes_free(&trace);
	return tsc;
}

static void where_no_psb_says_whose_time_it_is_the_crystal_does(void **state)
{
	const uint64_t now = host + pt_ctc_to_tsc(&bench_skylake_x, 8), offset = (uint64_t)1 << 40;

	assert_int_equal(translated(true, now + offset, offset), now);
	assert_int_equal(translated(false, now + offset, offset), now);
	assert_int_equal(translated(true, now + 5000 + offset, offset), now + 5000);
	assert_int_equal(translated(true, now, offset), now);
	assert_int_equal(translated(false, now + offset / 2, offset), now + offset / 2);
}

/* Rounding would change it. */
static void a_guest_whose_time_is_the_hosts_is_left_alone(void **state)
{
	const uint64_t now = host + pt_ctc_to_tsc(&bench_skylake_x, 8);

	assert_int_equal(translated(true, now + 500, 3), now + 500);
}

/* What the one time stamp becomes that changes; frees the trace and the offsets. */
static uint64_t patched(struct pt_bytes *trace, struct tsc_offsets *offsets, uint64_t reference)
{
	struct bench_queue queue = { 0 };
	struct tsc_patches patches;
	struct tsc_patch patch;

	bench_queue_add(&queue, trace->data, trace->size, false);
	queue.spans[0].reference = reference;
	tsc_patches_init(&patches, offsets, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	assert_int_equal(tsc_patches_next(&patches, &patch), 0);
	assert_int_equal(tsc_patches_next(&patches, &(struct tsc_patch){ 0 }), -PTVM_END);
	bench_queue_free(&queue);
	tsc_offsets_free(offsets);
	pt_bytes_free(trace);
	return patch.value;
}

/* Ticks of the crystal that are missing do not make it another offset of the guest. */
static void assert_late(bool in_psb)
{
	const uint64_t lost = pt_ctc_to_tsc(&bench_skylake_x, CRYSTAL_TMA_RANGE);
	const uint64_t now = host + lost, before = lost / 2, after = 7;
	struct tsc_offsets offsets = { 0 };
	struct pt_bytes trace = { 0 };

	pt_put_psb_plus(&trace, &(struct pt_psb_plus){ .vmcs = VMCS, .tsc = host, .ctc = CTC });
	if (in_psb) {
		pt_put_value(&trace, PT_OVF, 0);
		pt_put_psb_plus(&trace,
				&(struct pt_psb_plus){
					.nr = true, .vmcs = VMCS, .tsc = now + after, .ctc = CTC });
	} else {
		pt_put(&trace, &(struct pt_packet){ .kind = PT_PIP, .flag = true });
		pt_put_value(&trace, PT_TSC, now + after);
		pt_put_tma(&trace, CTC, 0);
	}
	set_offsets(&offsets, before, after);
	assert_int_equal(patched(&trace, &offsets, 0), now);
}

static void after_a_loss_an_offset_is_told_by_when_it_was(void **state)
{
	assert_late(true);
}

/* As in a guest that sleeps without an exit. */
static void after_a_sleep_as_well(void **state)
{
	assert_late(false);
}

/* After 2^56 ticks, some months, packets have not all of the host's time, which a ratio scales. */
static void a_host_that_is_up_for_long_is_followed_through_any_guest(void **state)
{
	const uint64_t now = ((uint64_t)3 << 56) + host, ratio = TSC_RATIO_ONE / 2 * 3;
	const uint64_t then = now + pt_ctc_to_tsc(&bench_skylake_x, 8);
	struct tsc_segment scaled = { .to = UINT64_MAX, .ratio = ratio, .host = now };
	struct vmcs_offsets guest = { .vmcs = VMCS + 1 };
	struct tsc_offsets offsets = { 0 };
	struct pt_bytes trace = { 0 };

	pt_put_psb_plus(&trace,
			&(struct pt_psb_plus){ .nr = true, .vmcs = VMCS, .tsc = host, .ctc = CTC });
	pt_put_psb_plus(&trace, &(struct pt_psb_plus){ .nr = true,
						       .vmcs = VMCS + 1,
						       .tsc = tsc_scale(then, ratio) & PT_TSC_MASK,
						       .ctc = CTC + 8 });
	set_offsets(&offsets, 0, 0);
	assert_true(vec_push(&guest.segments, scaled) && vec_push(&offsets.guests, guest));
	assert_in_range(patched(&trace, &offsets, now + 1000000), (then & PT_TSC_MASK) - 1,
			(then & PT_TSC_MASK) + 1);
}

static void a_guest_without_offset_is_left_and_counted(void **state)
{
	const struct tsc_offsets offsets = { 0 };
	struct bench_queue queue = { 0 };
	struct pt_bytes trace = { 0 };
	struct tsc_patches patches;
	struct tsc_patch patch;

	put_trace(&trace, host, 8);
	bench_queue_add(&queue, trace.data, trace.size, false);
	tsc_patches_init(&patches, &offsets, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	assert_int_equal(tsc_patches_next(&patches, &patch), -PTVM_END);
	assert_int_equal(patches.left, 1);
	bench_queue_free(&queue);
	pt_bytes_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pebs_record_gets_the_hosts_time),
		cmocka_unit_test(half_a_time_stamp_goes_by_the_offset_of_its_time),
		cmocka_unit_test(where_no_psb_says_whose_time_it_is_the_crystal_does),
		cmocka_unit_test(a_guest_whose_time_is_the_hosts_is_left_alone),
		cmocka_unit_test(after_a_loss_an_offset_is_told_by_when_it_was),
		cmocka_unit_test(after_a_sleep_as_well),
		cmocka_unit_test(a_host_that_is_up_for_long_is_followed_through_any_guest),
		cmocka_unit_test(a_guest_without_offset_is_left_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
