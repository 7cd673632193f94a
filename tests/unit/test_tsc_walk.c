#include "correlate/tsc_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* Packets by hand, and the time stamps that are found in them. */

enum { EVENTS_MAX = 16 };

struct found {
	struct tsc_event events[EVENTS_MAX];
	size_t count;
};

static struct found walk(const struct pt_bytes *trace)
{
	struct bench_queue queue = { 0 };
	struct found found = { 0 };
	struct tsc_walk walk;

	bench_queue_add(&queue, trace->data, trace->size, false);
	tsc_walk_init(&walk, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	while (found.count < EVENTS_MAX && !tsc_walk_next(&walk, &found.events[found.count]))
		found.count++;
	bench_queue_free(&queue);
	return found;
}

static void put_psb_plus(struct pt_bytes *trace, bool nr, uint64_t vmcs, uint64_t tsc, uint16_t ctc)
{
	const struct pt_psb_plus group = {
		.nr = nr, .vmcs = vmcs, .tsc = tsc, .ctc = ctc, .fast = 7
	};

	pt_put_psb_plus(trace, &group);
}

static void a_psb_group_says_whose_time_it_is(void **state)
{
	struct pt_bytes trace = { 0 };
	struct found found;

	put_psb_plus(&trace, true, 0x2664e, 1234567, 100);
	found = walk(&trace);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.events[0].kind, TSC_PACKET);
	assert_true(found.events[0].guest && found.events[0].mode_told);
	assert_int_equal(found.events[0].vmcs, 0x2664e);
	assert_int_equal(found.events[0].value, 1234567);
	assert_int_equal(found.events[0].position, PT_PSB_SIZE + 1);
	assert_int_equal(found.events[0].size, 7);
	assert_int_equal(found.events[0].count, 100);
	assert_int_equal(found.events[0].fast, 7);
	assert_int_equal(found.events[1].kind, TSC_BREAK);
	pt_bytes_free(&trace);
}

static void mtcs_carry_the_count_to_the_next(void **state)
{
	struct pt_bytes trace = { 0 };
	struct found found;

	put_psb_plus(&trace, false, 1, 1000, 0xfff0);
	for (unsigned mtc = 0x1fff; mtc < 0x1fff + 700; mtc++)
		pt_put_value(&trace, PT_MTC, mtc & 0xff);
	put_psb_plus(&trace, false, 1, 2000, (uint16_t)(0xfff8 + 700 * 8 - 8));
	found = walk(&trace);
	assert_int_equal(found.events[1].count - found.events[0].count, 700 * 8);
	pt_bytes_free(&trace);
}

static void a_pip_outside_of_psb_is_remembered(void **state)
{
	struct pt_bytes trace = { 0 };
	struct found found;

	put_psb_plus(&trace, false, 5, 1000, 0);
	pt_put(&trace, &(struct pt_packet){ .kind = PT_PIP, .flag = true, .payload = 0x2000 });
	pt_put_value(&trace, PT_VMCS, PT_NO_VMCS);
	pt_put_value(&trace, PT_OVF, 0);
	pt_put_value(&trace, PT_TSC, 5000);
	pt_put_tma(&trace, 9, 0);
	found = walk(&trace);
	assert_int_equal(found.count, 3);
	assert_true(found.events[1].guest && !found.events[1].mode_told && found.events[1].lost);
	assert_int_equal(found.events[1].vmcs, 5); /* "none" says nothing of the guest before */
	pt_bytes_free(&trace);
}

/* A trace of user code alone has no PIP (SDM "PIP Packet"). */
static void a_group_without_pip_changes_no_mode(void **state)
{
	struct pt_bytes trace = { 0 };
	struct found found;

	put_psb_plus(&trace, true, 5, 1000, 0);
	pt_put_psb(&trace);
	pt_put_value(&trace, PT_TSC, 2000);
	pt_put_value(&trace, PT_PSBEND, 0);
	found = walk(&trace);
	assert_int_equal(found.count, 3);
	assert_true(found.events[1].guest && !found.events[1].mode_told);
	assert_int_equal(found.events[1].vmcs, 5);
	pt_bytes_free(&trace);
}

/* A snapshot may begin within a packet, what comes behind a loss does not. */
static void behind_a_loss_only_a_snapshot_waits_for_a_psb(void **state)
{
	for (int snapshot = 0; snapshot < 2; snapshot++) {
		struct pt_config config = bench_skylake_x;
		struct pt_bytes first = { 0 }, second = { 0 };
		struct bench_queue queue = { 0 };
		struct tsc_event event;
		struct tsc_walk walk;

		put_psb_plus(&first, false, 5, 1000, 0);
		pt_put_value(&second, PT_TSC, 2000);
		put_psb_plus(&second, false, 5, 3000, 0);
		bench_queue_add(&queue, first.data, first.size, false);
		bench_queue_add(&queue, second.data, second.size, true);
		config.snapshot = snapshot;
		tsc_walk_init(&walk, &queue.queue, &config, (struct bytes){ 0 });
		assert_int_equal(tsc_walk_next(&walk, &event), 0);
		assert_int_equal(tsc_walk_next(&walk, &event), 0);
		assert_int_equal(event.kind, TSC_BREAK);
		assert_int_equal(tsc_walk_next(&walk, &event), 0);
		assert_int_equal(event.value, snapshot ? 3000 : 2000);
		bench_queue_free(&queue);
		pt_bytes_free(&first);
		pt_bytes_free(&second);
	}
}

/* It is the host's kernel that goes on with a trace. Which VMCS it has then, no packet says. */
static void behind_a_loss_is_the_host(void **state)
{
	struct pt_bytes first = { 0 }, second = { 0 };
	struct bench_queue queue = { 0 };
	struct tsc_event event;
	struct tsc_walk walk;

	put_psb_plus(&first, true, 5, 1000, 0);
	pt_put_value(&second, PT_TSC, 2000);
	pt_put(&second, &(struct pt_packet){ .kind = PT_PIP, .flag = true, .payload = 0x2000 });
	pt_put_value(&second, PT_TSC, 3000);
	bench_queue_add(&queue, first.data, first.size, false);
	bench_queue_add(&queue, second.data, second.size, true);
	tsc_walk_init(&walk, &queue.queue, &bench_skylake_x, (struct bytes){ 0 });
	for (int i = 0; i < 3; i++)
		assert_int_equal(tsc_walk_next(&walk, &event), 0);
	assert_int_equal(event.value, 2000);
	assert_false(event.guest);
	assert_int_equal(tsc_walk_next(&walk, &event), 0);
	assert_int_equal(event.value, 3000);
	assert_true(event.guest);
	assert_int_equal(event.vmcs, PT_NO_VMCS);
	bench_queue_free(&queue);
	pt_bytes_free(&first);
	pt_bytes_free(&second);
}

static void a_tma_spoilt_by_skz84_is_none(void **state)
{
	static const uint8_t spoilt[] = { 0x02, 0x73, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66 };
	struct pt_bytes trace = { 0 };
	struct found found;

	pt_put_psb(&trace);
	pt_put_value(&trace, PT_TSC, 77);
	pt_put_bytes(&trace, spoilt, sizeof(spoilt));
	pt_put(&trace, &(struct pt_packet){ .kind = PT_PIP, .flag = true, .payload = 0x1000 });
	pt_put_value(&trace, PT_VMCS, 3);
	pt_put_value(&trace, PT_PSBEND, 0);
	found = walk(&trace);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.events[0].vmcs, 3);
	assert_false(found.events[0].have_tma);
	pt_bytes_free(&trace);
}

static void a_pebs_record_has_a_time_stamp(void **state)
{
	const struct pt_packet item = { .kind = PT_BIP, .size = 9, .payload = 99, .count = 2 };
	struct pt_bytes trace = { 0 };
	struct found found;

	put_psb_plus(&trace, true, 3, 1000, 0);
	pt_put(&trace, &(struct pt_packet){ .kind = PT_BBP, .payload = 4, .count = 8 });
	pt_put(&trace, &(struct pt_packet){ .kind = PT_BIP, .size = 9, .payload = 98, .count = 1 });
	pt_put(&trace, &item);
	pt_put(&trace, &(struct pt_packet){ .kind = PT_BEP });
	pt_put(&trace, &(struct pt_packet){ .kind = PT_BBP, .payload = 1, .count = 8 });
	pt_put(&trace, &item); /* a register */
	pt_put(&trace, &(struct pt_packet){ .kind = PT_BEP });
	found = walk(&trace);
	assert_int_equal(found.count, 3);
	assert_int_equal(found.events[1].kind, TSC_PEBS);
	assert_int_equal(found.events[1].size, 8);
	assert_int_equal(found.events[1].value, 99);
	assert_int_equal(trace.data[found.events[1].position], 99);
	pt_bytes_free(&trace);
}

/* The file has zeroes, which show again where pages were given back. */
static void pages_behind_a_walk_are_given_back(void **state)
{
	enum { SPANS = 8, SPAN = 512 << 10, SIZE = SPANS * SPAN, TNT = 6 };
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	struct aux_span spans[SPANS] = { 0 };
	struct aux_queue queue = { .spans = spans, .count = SPANS, .size = SIZE };
	struct tsc_event event;
	struct tsc_walk walk;
	uint8_t *file;

	assert_int_equal(ftruncate(fd, SIZE), 0);
	file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	memset(file, TNT, SIZE);
	for (size_t i = 0; i < SPANS; i++)
		spans[i] = (struct aux_span){ .data = file + i * SPAN,
					      .size = SPAN,
					      .position = i * SPAN };
	tsc_walk_init(&walk, &queue, &bench_skylake_x, (struct bytes){ file, SIZE });
	assert_int_equal(tsc_walk_next(&walk, &event), 0);
	assert_int_equal(event.kind, TSC_BREAK);
	assert_int_equal(event.position, SIZE);
	assert_int_equal(file[0], 0);
	assert_int_equal(file[SIZE / 2], 0);
	(void)munmap(file, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_psb_group_says_whose_time_it_is),
		cmocka_unit_test(mtcs_carry_the_count_to_the_next),
		cmocka_unit_test(a_pip_outside_of_psb_is_remembered),
		cmocka_unit_test(a_group_without_pip_changes_no_mode),
		cmocka_unit_test(behind_a_loss_only_a_snapshot_waits_for_a_psb),
		cmocka_unit_test(behind_a_loss_is_the_host),
		cmocka_unit_test(a_tma_spoilt_by_skz84_is_none),
		cmocka_unit_test(a_pebs_record_has_a_time_stamp),
		cmocka_unit_test(pages_behind_a_walk_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
