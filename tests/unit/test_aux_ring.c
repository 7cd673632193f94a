#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/aux_ring.h"
#include "host/record/perf_open.h"
#include "tests/fake_kernel.h"
#include "tests/sim_random.h"

enum { SIZE = FAKE_PAGE_SIZE, STREAM = 1 << 20, ROUNDS = 20000 };

struct bench {
	struct fake_kernel kernel;
	struct aux_ring ring;
	uint8_t stream[STREAM]; /* no byte of it is 0 */
};

static int set_up(void **state)
{
	static struct bench bench;

	fake_kernel_init(&bench.kernel);
	memset(&bench.ring, 0, sizeof(bench.ring));
	for (size_t i = 0; i < STREAM; i++)
		bench.stream[i] = (uint8_t)(1 + (i + i / 255) % 255);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	aux_ring_unmap(&bench->ring);
	assert_int_equal(bench->kernel.mapped, 0);
	fake_kernel_deinit(&bench->kernel);
	return 0;
}

static void map(struct bench *bench, bool is_snapshot)
{
	assert_int_equal(
		aux_ring_map(&bench->ring, &bench->kernel.table, FAKE_FD, 1, 1, is_snapshot, NULL),
		0);
}

static uint64_t count(const struct ring_bytes *bytes)
{
	return bytes->first_size + bytes->second_size;
}

static void assert_bytes(const struct ring_bytes *bytes, const uint8_t *expected, uint64_t size)
{
	assert_int_equal(count(bytes), size);
	assert_memory_equal(bytes->first, expected, bytes->first_size);
	assert_memory_equal(bytes->second, expected + bytes->first_size, bytes->second_size);
}

static void the_trace_lies_behind_the_records(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		aux_ring_map(&bench->ring, &bench->kernel.table, FAKE_FD, 4, 8, false, NULL), 0);
	assert_int_equal(bench->ring.page->aux_offset, 5 * SIZE);
	assert_int_equal(bench->ring.page->aux_size, 8 * SIZE);
	assert_ptr_equal(bench->ring.records, bench->kernel.records + SIZE);
	assert_int_equal(bench->ring.records_size, 4 * SIZE);
	assert_int_equal(bench->ring.aux_size, 8 * SIZE);
	assert_int_equal(bench->kernel.trace_protection, PROT_READ | PROT_WRITE);
}

static void a_snapshot_is_mapped_for_reading(void **state)
{
	struct bench *bench = *state;

	map(bench, true);
	assert_int_equal(bench->kernel.trace_protection, PROT_READ);
}

static void an_event_needs_no_trace(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		aux_ring_map(&bench->ring, &bench->kernel.table, FAKE_FD, 2, 0, false, NULL), 0);
	assert_null(bench->ring.aux);
	assert_int_equal(bench->kernel.mapped, 1);
}

static void sizes_are_powers_of_two(void **state)
{
	static const uint64_t sizes[][2] = {
		{ 0, 1 }, { 3, 1 }, { 1, 3 }, { 1ULL << 63, 1 }, { 1, 1ULL << 60 }
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_int_equal(aux_ring_map(&bench->ring, &bench->kernel.table, FAKE_FD,
					      sizes[i][0], sizes[i][1], false, NULL),
				 -PTVM_BAD_USAGE);
}

static void assert_not_mapped(struct bench *bench, const char *message)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(
		aux_ring_map(&bench->ring, &bench->kernel.table, FAKE_FD, 1, 2, false, &error),
		-PTVM_SYSTEM);
	assert_string_equal(error.message, message);
	assert_int_equal(bench->kernel.mapped, 0);
	assert_null(bench->ring.page);
}

static void what_cannot_be_mapped_is_explained(void **state)
{
	struct bench *bench = *state;

	bench->kernel.map_trace_errno = EPERM;
	assert_not_mapped(bench,
			  "no right to lock 8 KiB for a buffer: run as root, raise ulimit -l "
			  "or kernel.perf_event_mlock_kb, or use smaller buffers (-m)");
	bench->kernel.map_trace_errno = ENOMEM;
	assert_not_mapped(bench, "no memory for a buffer of 8 KiB: use smaller buffers (-m)");
	bench->kernel.map_records_errno = ENODEV;
	assert_not_mapped(bench, "a buffer of 8 KiB: No such device");
}

static void an_empty_ring_has_nothing(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, false);
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
	assert_int_equal(count(&bytes), 0);
	assert_int_equal(aux_ring_records(&bench->ring, &bytes), 0);
	assert_int_equal(count(&bytes), 0);
}

static void what_goes_around_the_end_is_in_two_pieces(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, false);
	fake_kernel_trace(&bench->kernel, bench->stream, SIZE - 10);
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
	aux_ring_release_trace(&bench->ring, &bytes);
	fake_kernel_trace(&bench->kernel, bench->stream, 30);
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
	assert_int_equal(bytes.first_size, 10);
	assert_int_equal(bytes.second_size, 20);
	assert_bytes(&bytes, bench->stream, 30);
}

static void a_full_ring_stops_until_it_is_switched_on(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, false);
	assert_int_equal(fake_kernel_trace(&bench->kernel, bench->stream, SIZE + 1), SIZE);
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
	assert_bytes(&bytes, bench->stream, SIZE);
	aux_ring_release_trace(&bench->ring, &bytes);
	assert_int_equal(fake_kernel_trace(&bench->kernel, bench->stream, 1), 0);
	assert_int_equal(perf_switch(&bench->kernel.table, FAKE_FD, true, NULL), 0);
	assert_int_equal(fake_kernel_trace(&bench->kernel, bench->stream, 1), 1);
}

/* Nothing is lost, repeated or moved, whatever the sizes; the count passes 2^32 and 2^64. */
static void all_bytes_arrive_in_order(void **state)
{
	struct bench *bench = *state;
	struct sim_random random = { 20261121 };
	uint64_t from = 0, to = 0, size;
	struct ring_bytes bytes;

	map(bench, false);
	bench->ring.page->aux_head = bench->ring.page->aux_tail = -(uint64_t)(3 * SIZE);
	bench->ring.page->data_head = bench->ring.page->data_tail = (1ULL << 32) - SIZE;
	for (int i = 0; i < ROUNDS; i++) {
		size = sim_random_below(&random, SIZE + 1);
		size = size < STREAM - to ? size : STREAM - to;
		if (sim_random_once_in(&random, 2))
			to += fake_kernel_trace(&bench->kernel, bench->stream + to, size);
		assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
		assert_bytes(&bytes, bench->stream + from, to - from);
		if (sim_random_once_in(&random, 2))
			continue;
		aux_ring_release_trace(&bench->ring, &bytes);
		(void)perf_switch(&bench->kernel.table, FAKE_FD, true, NULL);
		from = to;
	}
	assert_int_equal(to, STREAM);
}

static void records_arrive_in_order(void **state)
{
	struct bench *bench = *state;
	struct sim_random random = { 7 };
	uint64_t from = 0, to = 0;
	struct ring_bytes bytes;

	map(bench, false);
	while (to < STREAM - 256) {
		to += fake_kernel_record(&bench->kernel, bench->stream + to,
					 8 + 8 * sim_random_below(&random, 16));
		assert_int_equal(aux_ring_records(&bench->ring, &bytes), 0);
		assert_bytes(&bytes, bench->stream + from, to - from);
		if (sim_random_once_in(&random, 2) || count(&bytes) > SIZE - 256) {
			aux_ring_release_records(&bench->ring, &bytes);
			from = to;
		}
	}
}

static void a_head_that_cannot_be_is_refused(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, false);
	bench->ring.page->aux_head = SIZE + 1;
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), -PTVM_INCONSISTENT);
	assert_int_equal(count(&bytes), 0);
	bench->ring.page->aux_head = -(uint64_t)1;
	assert_int_equal(aux_ring_trace(&bench->ring, &bytes), -PTVM_INCONSISTENT);
	bench->ring.page->data_head = SIZE + 8;
	assert_int_equal(aux_ring_records(&bench->ring, &bytes), -PTVM_INCONSISTENT);
	aux_ring_release_records(&bench->ring, &bytes);
	assert_int_equal(aux_ring_records(&bench->ring, &bytes), 0);
	assert_int_equal(count(&bytes), 0);
}

static void a_snapshot_before_the_first_round_begins_at_the_start(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, true);
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), 0);
	assert_int_equal(count(&bytes), 0);
	fake_kernel_overwrite(&bench->kernel, bench->stream, 100);
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), 0);
	assert_bytes(&bytes, bench->stream, 100);
	assert_int_equal(aux_ring_snapshot(&bench->ring, 30, &bytes), 0);
	assert_bytes(&bytes, bench->stream + 70, 30);
	assert_false(bench->ring.is_around);
}

static void a_snapshot_after_it_ends_at_the_head(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, true);
	fake_kernel_overwrite(&bench->kernel, bench->stream, SIZE + 100);
	assert_int_equal(aux_ring_snapshot(&bench->ring, 2 * SIZE, &bytes), 0);
	assert_bytes(&bytes, bench->stream + 100, SIZE);
	assert_int_equal(aux_ring_snapshot(&bench->ring, 150, &bytes), 0);
	assert_int_equal(bytes.first_size, 50);
	assert_bytes(&bytes, bench->stream + SIZE - 50, 150);
	assert_true(bench->ring.is_around);
}

static void a_snapshot_of_a_full_ring_is_all_of_it(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, true);
	fake_kernel_overwrite(&bench->kernel, bench->stream, SIZE);
	/* With a full ring, aux_head may be the end as well as the beginning. */
	bench->ring.page->aux_head = SIZE;
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), 0);
	assert_bytes(&bytes, bench->stream, SIZE);
	bench->ring.page->aux_head = 0;
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), 0);
	assert_bytes(&bytes, bench->stream, SIZE);
	bench->ring.page->aux_head = SIZE + 1;
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), -PTVM_INCONSISTENT);
}

/* A ring that was never filled is zero, but PAD packets are zeroes, too. */
static void a_snapshot_sees_a_round_behind_zeroes(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;

	map(bench, true);
	bench->kernel.trace[SIZE - 1] = 1;
	fake_kernel_overwrite(&bench->kernel, bench->stream, 100);
	assert_int_equal(aux_ring_snapshot(&bench->ring, SIZE, &bytes), 0);
	assert_int_equal(count(&bytes), SIZE);
}

static void the_clock_is_read_when_it_is_not_written(void **state)
{
	struct bench *bench = *state;
	struct perf_event_mmap_page *page;
	struct ring_clock clock;

	map(bench, false);
	page = fake_kernel_page(&bench->kernel);
	page->time_shift = 31;
	page->time_mult = 1000000;
	page->time_zero = -(uint64_t)5;
	page->cap_user_time_zero = 1;
	assert_int_equal(aux_ring_clock(&bench->ring, &clock), 0);
	assert_true(clock.conv.valid);
	assert_int_equal(clock.conv.shift, 31);
	assert_int_equal(clock.conv.mult, 1000000);
	assert_int_equal(clock.conv.zero, -(uint64_t)5);
	page->cap_user_time_zero = 0;
	assert_int_equal(aux_ring_clock(&bench->ring, &clock), 0);
	assert_false(clock.conv.valid);
	page->lock = 1;
	assert_int_equal(aux_ring_clock(&bench->ring, &clock), -PTVM_INCONSISTENT);
}

/* A CPU that traces while we read. */
static void *trace_all(void *context)
{
	struct bench *bench = context;

	for (uint64_t at = 0; at < STREAM;) {
		bench->kernel.is_stopped = false;
		at += fake_kernel_trace(&bench->kernel, bench->stream + at,
					STREAM - at < 777 ? STREAM - at : 777);
	}
	return NULL;
}

static void a_reader_keeps_up_with_a_writer(void **state)
{
	struct bench *bench = *state;
	struct ring_bytes bytes;
	pthread_t writer;

	map(bench, false);
	assert_int_equal(pthread_create(&writer, NULL, trace_all, bench), 0);
	for (uint64_t at = 0; at < STREAM; at += count(&bytes)) {
		assert_int_equal(aux_ring_trace(&bench->ring, &bytes), 0);
		assert_bytes(&bytes, bench->stream + at, count(&bytes));
		aux_ring_release_trace(&bench->ring, &bytes);
	}
	assert_int_equal(pthread_join(writer, NULL), 0);
}

/* The types of the records in a ring, as bits. */
static unsigned types_in(const struct ring_bytes *bytes)
{
	struct perf_event_header header;
	uint8_t whole[1 << 16];
	unsigned types = 0;

	assert_in_range(count(bytes), 0, sizeof(whole));
	memcpy(whole, bytes->first, bytes->first_size);
	memcpy(whole + bytes->first_size, bytes->second, bytes->second_size);
	for (uint64_t at = 0; at + sizeof(header) <= count(bytes); at += header.size) {
		memcpy(&header, whole + at, sizeof(header));
		assert_in_range(header.size, sizeof(header), count(bytes) - at);
		types |= 1U << header.type;
	}
	return types;
}

static int open_here(const struct perf_kernel *kernel, enum perf_kind kind)
{
	const struct perf_choice choice = { .has_lost = perf_lost_is_known(kernel) };
	struct perf_event_attr attr;

	perf_attr_make(kind, &choice, &attr);
	return perf_open(kernel, kind, &attr, &(struct perf_place){ 0, -1, -1 }, NULL);
}

static void the_real_kernel_tells_of_switches_and_maps(void **state)
{
	const struct perf_kernel here = perf_kernel_here();
	struct bench *bench = *state;
	struct ring_bytes bytes;
	int fd = open_here(&here, PERF_SWITCHES);
	int other = open_here(&here, PERF_TASKS);
	uint64_t id = 0;
	void *area;

	if (fd < 0 || other < 0)
		skip();
	assert_int_equal(aux_ring_map(&bench->ring, &here, fd, 8, 0, false, NULL), 0);
	assert_int_equal(perf_redirect(&here, other, fd, NULL), 0);
	assert_int_equal(perf_id(&here, fd, &id, NULL), 0);
	assert_int_not_equal(id, 0);
	area = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(munmap(area, 4096), 0);
	assert_int_equal(usleep(10000), 0);
	assert_int_equal(perf_switch(&here, fd, false, NULL), 0);
	assert_int_equal(aux_ring_records(&bench->ring, &bytes), 0);
	assert_int_equal(types_in(&bytes) & (1U << 14 | 1U << 10), 1U << 14 | 1U << 10);
	aux_ring_release_records(&bench->ring, &bytes);
	aux_ring_unmap(&bench->ring);
	(void)here.close(here.context, other);
	(void)here.close(here.context, fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_trace_lies_behind_the_records),
		TEST(a_snapshot_is_mapped_for_reading),
		TEST(an_event_needs_no_trace),
		TEST(sizes_are_powers_of_two),
		TEST(what_cannot_be_mapped_is_explained),
		TEST(an_empty_ring_has_nothing),
		TEST(what_goes_around_the_end_is_in_two_pieces),
		TEST(a_full_ring_stops_until_it_is_switched_on),
		TEST(all_bytes_arrive_in_order),
		TEST(records_arrive_in_order),
		TEST(a_head_that_cannot_be_is_refused),
		TEST(a_snapshot_before_the_first_round_begins_at_the_start),
		TEST(a_snapshot_after_it_ends_at_the_head),
		TEST(a_snapshot_of_a_full_ring_is_all_of_it),
		TEST(a_snapshot_sees_a_round_behind_zeroes),
		TEST(the_clock_is_read_when_it_is_not_written),
		TEST(a_reader_keeps_up_with_a_writer),
		TEST(the_real_kernel_tells_of_switches_and_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
