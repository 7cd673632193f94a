#include "decode/pt/pt_offset_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

/* One TSC tick is one ns of perf's clock; 2 are a crystal tick. */
static const struct bytes memory; /* no file is mapped */

static const struct pt_config config = { .conv = { .valid = true, .mult = 1 },
					 .tsc = true,
					 .mtc = true,
					 .mtc_shift = 3,
					 .ctc_n = 2,
					 .ctc_d = 1 };

enum { VMCS = 0x123, START = 100000000 };

/* A PSB+ at a host time, in a guest with this offset or (`vmcs` 0) in the host. */
static void put_psb(struct pt_bytes *bytes, uint64_t host, uint64_t vmcs, uint64_t offset,
		    bool with_tma)
{
	pt_put_psb(bytes);
	pt_put_value(bytes, PT_TSC, (host + offset) & PT_TSC_MASK);
	if (with_tma)
		pt_put(bytes, &(struct pt_packet){ .kind = PT_TMA,
						   .payload = (host / 2) & 0xffff,
						   .count = host & 1 });
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x1000, .flag = !!vmcs });
	if (vmcs)
		pt_put_value(bytes, PT_VMCS, vmcs);
	pt_put_ip(bytes, PT_FUP, 0x401000, 3);
	pt_put_value(bytes, PT_PSBEND, 0);
}

static void assert_offset(const struct pt_offsets *offsets, uint64_t vmcs, uint64_t expected)
{
	uint64_t found;

	assert_true(pt_offsets_find(offsets, vmcs, &found));
	assert_int_equal(found, expected & PT_TSC_MASK);
}

/* What two queues tell together. Frees them. */
static void assert_offset_of_two(struct bench_queue *needy, struct bench_queue *other,
				 uint64_t offset)
{
	const struct aux_queue queues[] = { needy->queue, other->queue };
	struct pt_offsets offsets;

	assert_int_equal(pt_offsets_learn(queues, 2, &config, &memory, &offsets), 0);
	assert_offset(&offsets, VMCS, offset);
	bench_queue_free(needy);
	bench_queue_free(other);
}

static void a_queue_that_shows_both_times_tells_the_offset(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_offsets offsets;
	struct pt_bytes bytes = { 0 };

	put_psb(&bytes, START, VMCS, (uint64_t)0 - 5000, true);
	put_psb(&bytes, START + 1000, 0, 0, true);
	put_psb(&bytes, START + 2000, VMCS, (uint64_t)0 - 5000, true);
	bench_queue_add(&bench, bytes.data, bytes.size, false);
	assert_int_equal(pt_offsets_learn(&bench.queue, 1, &config, &memory, &offsets), 0);
	assert_offset(&offsets, VMCS, (uint64_t)0 - 5000);
	bench_queue_free(&bench);
	pt_bytes_free(&bytes);
}

static void another_queue_may_show_it(void **state)
{
	struct bench_queue needy = { .room = 0 }, other = { .room = 0 };
	struct pt_bytes bytes = { 0 }, host = { 0 };

	put_psb(&bytes, START, VMCS, 77777, true);
	put_psb(&host, START + 1000, 0, 0, true);
	put_psb(&host, START + 2000, VMCS, 77777, true);
	bench_queue_add(&needy, bytes.data, bytes.size, false);
	bench_queue_add(&other, host.data, host.size, false);
	assert_offset_of_two(&needy, &other, 77777);
	pt_bytes_free(&bytes);
	pt_bytes_free(&host);
}

static void the_end_of_tracing_gives_it_roughly(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_offsets offsets;
	struct pt_bytes bytes = { 0 };
	uint64_t found;

	put_psb(&bytes, START, VMCS, 1 << 30, false);
	put_psb(&bytes, START + 1000, VMCS, 1 << 30, false);
	bench_queue_add(&bench, bytes.data, bytes.size, false);
	bench.spans[0].stop_ns = START + 1300;
	assert_int_equal(pt_offsets_learn(&bench.queue, 1, &config, &memory, &offsets), 0);
	assert_true(pt_offsets_find(&offsets, VMCS, &found));
	assert_int_equal(found, (1 << 30) - 300);
	bench_queue_free(&bench);
	pt_bytes_free(&bytes);
}

/* What others show on the way, be it the host or another guest, is another time. */
static void what_runs_before_that_end_does_not_matter(void **state)
{
	const uint64_t offset = 1 << 30;

	for (unsigned others = 1; others < 4; others++) {
		struct bench_queue bench = { .room = 0 };
		struct pt_offsets offsets;
		struct pt_bytes bytes = { 0 };

		put_psb(&bytes, START, VMCS, offset, true);
		put_psb(&bytes, START + 2, VMCS, offset, true);
		if (others & 1)
			put_psb(&bytes, START + 4, VMCS + 1, 12345678, true);
		if (others & 2)
			put_psb(&bytes, START + 6, 0, 0, true);
		bench_queue_add(&bench, bytes.data, bytes.size, false);
		bench.spans[0].stop_ns = START + 2;
		assert_int_equal(pt_offsets_learn(&bench.queue, 1, &config, &memory, &offsets), 0);
		assert_offset(&offsets, VMCS, offset);
		bench_queue_free(&bench);
		pt_bytes_free(&bytes);
	}
}

/* Begin in a guest, and learn by when this ended and by the crystal as another CPU's host shows it.
 */
static void learn_by_host(uint64_t guest_time, uint64_t stop, uint64_t host_time)
{
	struct bench_queue needy = { .room = 0 }, other = { .room = 0 };
	struct pt_bytes bytes = { 0 }, host = { 0 };
	struct aux_queue queues[2];
	struct pt_offsets offsets;

	put_psb(&bytes, guest_time, VMCS, 1 << 30, true);
	put_psb(&host, host_time, 0, 0, true);
	bench_queue_add(&needy, bytes.data, bytes.size, false);
	bench_queue_add(&other, host.data, host.size, false);
	needy.spans[0].stop_ns = stop;
	other.spans[0].stop_ns = host_time + 5000;
	queues[0] = needy.queue;
	queues[1] = other.queue;
	assert_int_equal(pt_offsets_learn(queues, 2, &config, &memory, &offsets), 0);
	assert_int_equal(offsets.count, 1);
	assert_offset(&offsets, VMCS, 1 << 30);
	bench_queue_free(&needy);
	bench_queue_free(&other);
	pt_bytes_free(&bytes);
	pt_bytes_free(&host);
}

/* The crystal's count comes again every 131072 ns. */
static void the_crystal_of_another_queue_makes_that_exact(void **state)
{
	static const int away[] = { 123456, -123456, 5000001, -5000001 };

	for (size_t i = 0; i < 4; i++) {
		learn_by_host(START + 1, START + 1300, (uint64_t)(START + away[i]));
		learn_by_host(START + 1, START - 1300, (uint64_t)(START + away[i]));
	}
}

/* As in samples of the trace of a CPU, to which another vCPU came since the one before. */
static void a_guest_may_come_up_after_a_loss(void **state)
{
	struct bench_queue needy = { .room = 0 }, other = { .room = 0 };
	struct pt_bytes host = { 0 }, guest = { 0 }, both = { 0 };

	put_psb(&host, START, 0, 0, true);
	put_psb(&guest, START + 50000, VMCS, 77777, true);
	put_psb(&both, START + 1000, 0, 0, true);
	put_psb(&both, START + 2000, VMCS, 77777, true);
	bench_queue_add(&needy, host.data, host.size, false);
	bench_queue_add(&needy, guest.data, guest.size, true);
	bench_queue_add(&other, both.data, both.size, false);
	assert_offset_of_two(&needy, &other, 77777);
	pt_bytes_free(&host);
	pt_bytes_free(&guest);
	pt_bytes_free(&both);
}

static void the_end_of_what_follows_a_loss_gives_it_roughly(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_bytes host = { 0 }, guest = { 0 };
	struct pt_offsets offsets;
	uint64_t found;

	put_psb(&host, START, 0, 0, false);
	put_psb(&guest, START + 50000, VMCS, 1 << 30, false);
	put_psb(&guest, START + 51000, VMCS, 1 << 30, false);
	bench_queue_add(&bench, host.data, host.size, false);
	bench_queue_add(&bench, guest.data, guest.size, true);
	bench.spans[0].stop_ns = START + 300;
	bench.spans[1].stop_ns = START + 51300;
	assert_int_equal(pt_offsets_learn(&bench.queue, 1, &config, &memory, &offsets), 0);
	assert_true(pt_offsets_find(&offsets, VMCS, &found));
	assert_int_equal(found, (1 << 30) - 300);
	bench_queue_free(&bench);
	pt_bytes_free(&host);
	pt_bytes_free(&guest);
}

static void nothing_is_learned_where_nothing_tells(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_offsets offsets;
	struct pt_bytes bytes = { 0 };

	put_psb(&bytes, START, VMCS, 5, true);
	bench_queue_add(&bench, bytes.data, bytes.size, false);
	assert_int_equal(pt_offsets_learn(&bench.queue, 1, &config, &memory, &offsets), 0);
	assert_int_equal(offsets.count, 0);
	bench_queue_free(&bench);
	pt_bytes_free(&bytes);
}

/* If each of them were asked again for each other one, this would take minutes. */
static void thousands_of_queues_may_be_in_need(void **state)
{
	enum { QUEUES = 8192, PADS = 64 << 10 };
	struct aux_queue *queues = calloc(QUEUES, sizeof(*queues));
	struct bench_queue bench = { .room = 0 };
	struct pt_offsets offsets;
	struct pt_bytes bytes = { 0 };

	assert_non_null(queues);
	for (unsigned i = 0; i < PADS; i++)
		pt_put_value(&bytes, PT_PAD, 0);
	put_psb(&bytes, START, VMCS, 77777, false);
	bench_queue_add(&bench, bytes.data, bytes.size, false);
	for (unsigned i = 0; i < QUEUES; i++)
		queues[i] = bench.queue;
	assert_int_equal(pt_offsets_learn(queues, QUEUES, &config, &memory, &offsets), 0);
	assert_int_equal(offsets.count, 0);
	bench_queue_free(&bench);
	pt_bytes_free(&bytes);
	free(queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_that_shows_both_times_tells_the_offset),
		cmocka_unit_test(another_queue_may_show_it),
		cmocka_unit_test(the_end_of_tracing_gives_it_roughly),
		cmocka_unit_test(what_runs_before_that_end_does_not_matter),
		cmocka_unit_test(the_crystal_of_another_queue_makes_that_exact),
		cmocka_unit_test(a_guest_may_come_up_after_a_loss),
		cmocka_unit_test(the_end_of_what_follows_a_loss_gives_it_roughly),
		cmocka_unit_test(nothing_is_learned_where_nothing_tells),
		cmocka_unit_test(thousands_of_queues_may_be_in_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
