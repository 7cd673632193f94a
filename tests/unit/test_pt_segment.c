#include "decode/pt/pt_segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/flow_bench.h"

static const struct pt_config config = {
	.tsc = true, .mtc = true, .mtc_shift = 3, .ctc_n = 2, .ctc_d = 1
};

struct fixture {
	struct pt_bytes bytes;
	struct bench_queue bench;
	struct pt_walk walk;
	struct pt_segment segment;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	bench_queue_free(&fixture->bench);
	pt_bytes_free(&fixture->bytes);
	return 0;
}

/* A PSB+ in the host with this TSC, and a few branches. */
static void put_stretch(struct pt_bytes *bytes, uint64_t tsc)
{
	pt_put_psb(bytes);
	pt_put_value(bytes, PT_TSC, tsc);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x1000 });
	pt_put_ip(bytes, PT_FUP, 0x401000, 3);
	pt_put_value(bytes, PT_PSBEND, 0);
	for (int i = 0; i < 20; i++)
		pt_put(bytes, &(struct pt_packet){ .kind = PT_TNT, .count = 3, .payload = 5 });
}

static size_t count_segments(const struct aux_queue *queue, uint64_t min_size)
{
	struct pt_segment segment;
	uint64_t position = 0;
	struct pt_walk walk;
	size_t count = 0;

	pt_walk_init(&walk, queue, &config, NULL, min_size);
	while (!pt_walk_next(&walk, &segment)) {
		assert_int_equal(segment.from, position);
		assert_int_equal(segment.fresh, position == 0);
		assert_int_equal(segment.to_psb, segment.to != queue->size);
		if (segment.to_psb)
			assert_true(segment.to - segment.from >= min_size);
		position = segment.to;
		count++;
	}
	assert_int_equal(position, queue->size);
	return count;
}

static void segments_cover_the_queue_from_psb_to_psb(void **state)
{
	struct fixture *fixture = *state;
	const struct aux_queue *queue = &fixture->bench.queue;
	size_t one;

	put_stretch(&fixture->bytes, 1000);
	one = fixture->bytes.size;
	for (uint64_t i = 1; i < 10; i++)
		put_stretch(&fixture->bytes, 1000 + i);
	bench_queue_add(&fixture->bench, fixture->bytes.data, fixture->bytes.size, false);
	assert_int_equal(count_segments(queue, 0), 10);
	assert_int_equal(count_segments(queue, one), 10);
	assert_int_equal(count_segments(queue, one + 1), 5);
	assert_int_equal(count_segments(queue, 3 * one), 4);
	assert_int_equal(count_segments(queue, UINT64_MAX), 1);
}

/* Walk the bytes as one span, in the smallest segments. */
static void begin(struct fixture *fixture, const struct pt_config *trace)
{
	bench_queue_add(&fixture->bench, fixture->bytes.data, fixture->bytes.size, false);
	pt_walk_init(&fixture->walk, &fixture->bench.queue, trace, NULL, 0);
}

static const struct pt_segment *next(struct fixture *fixture)
{
	assert_int_equal(pt_walk_next(&fixture->walk, &fixture->segment), 0);
	return &fixture->segment;
}

static void assert_end(struct fixture *fixture)
{
	assert_int_equal(pt_walk_next(&fixture->walk, &fixture->segment), -PTVM_END);
}

static void a_segment_begins_with_clock_and_context_of_the_former(void **state)
{
	struct fixture *fixture = *state;
	struct pt_bytes *bytes = &fixture->bytes;
	const struct pt_segment *segment;

	put_stretch(bytes, 1000);
	pt_put_value(bytes, PT_VMCS, 0x123);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x2000, .flag = true });
	pt_put_value(bytes, PT_MODE_EXEC, 2);
	put_stretch(bytes, 2000);
	begin(fixture, &config);
	segment = next(fixture);
	assert_false(segment->clock.known);
	assert_int_equal(segment->context.vmcs, PT_NO_VMCS);
	segment = next(fixture);
	assert_int_equal(segment->clock.now, 1000);
	assert_int_equal(segment->context.vmcs, 0x123);
	assert_int_equal(segment->context.cr3, 0x2000);
	assert_int_equal(segment->context.bits, 32);
	assert_true(segment->context.if_clear);
	assert_true(segment->context.nr);
	assert_end(fixture);
	assert_int_equal(fixture->walk.clock.now, 2000);
}

static void a_loss_begins_a_fresh_segment(void **state)
{
	struct fixture *fixture = *state;
	struct pt_bytes *bytes = &fixture->bytes;
	const struct pt_segment *segment;

	put_stretch(bytes, 1000);
	bench_queue_add(&fixture->bench, bytes->data, bytes->size, false);
	bench_queue_add(&fixture->bench, bytes->data, bytes->size, true);
	pt_walk_init(&fixture->walk, &fixture->bench.queue, &config, NULL, UINT64_MAX);
	segment = next(fixture);
	assert_int_equal(segment->to, bytes->size);
	assert_false(segment->to_psb || segment->lost);
	segment = next(fixture);
	assert_int_equal(segment->from, bytes->size);
	assert_true(segment->fresh && segment->lost);
	assert_end(fixture);
}

/* It is the host's kernel that goes on with a trace, at whatever guest it had been stopped. */
static void a_loss_ends_in_the_host(void **state)
{
	struct fixture *fixture = *state;
	struct pt_bytes *bytes = &fixture->bytes, more = { 0 };
	const struct pt_segment *segment;

	put_stretch(bytes, 1000);
	pt_put_value(bytes, PT_VMCS, 0x123);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x2000, .flag = true });
	pt_put_value(&more, PT_TSC, 5000);
	pt_put_ip(&more, PT_TIP_PGE, 0x401000, 3);
	bench_queue_add(&fixture->bench, bytes->data, bytes->size, false);
	bench_queue_add(&fixture->bench, more.data, more.size, true);
	pt_walk_init(&fixture->walk, &fixture->bench.queue, &config, NULL, UINT64_MAX);
	next(fixture);
	segment = next(fixture);
	assert_false(segment->context.nr);
	assert_int_equal(segment->context.vmcs, PT_NO_VMCS);
	assert_end(fixture);
	assert_int_equal(fixture->walk.clock.now, 5000);
	assert_int_equal(fixture->walk.clock.offsets.count, 0);
	pt_bytes_free(&more);
}

static void behind_a_bad_byte_the_walk_goes_on_at_the_next_psb(void **state)
{
	struct fixture *fixture = *state;

	put_stretch(&fixture->bytes, 1000);
	pt_put_bytes(&fixture->bytes, "\xc9", 1);
	pt_put_value(&fixture->bytes, PT_TSC, 9999); /* is not to be believed */
	put_stretch(&fixture->bytes, 2000);
	begin(fixture, &config);
	next(fixture);
	assert_int_equal(next(fixture)->clock.now, 1000);
	assert_end(fixture);
	assert_int_equal(fixture->walk.clock.now, 2000);
}

static void a_psb_that_does_not_end_is_as_a_bad_byte(void **state)
{
	struct fixture *fixture = *state;

	pt_put_psb(&fixture->bytes);
	pt_put_value(&fixture->bytes, PT_TSC, 1000);
	pt_put_ip(&fixture->bytes, PT_TIP, 0x401000, 3); /* never in a PSB+ */
	pt_put_value(&fixture->bytes, PT_TSC, 9999);     /* is not to be believed */
	put_stretch(&fixture->bytes, 2000);
	begin(fixture, &config);
	next(fixture);
	assert_int_equal(next(fixture)->clock.now, 1000);
}

static void an_overflow_ends_a_transaction(void **state)
{
	struct fixture *fixture = *state;

	put_stretch(&fixture->bytes, 1000);
	pt_put_value(&fixture->bytes, PT_MODE_TSX, 1);
	put_stretch(&fixture->bytes, 2000);
	pt_put_value(&fixture->bytes, PT_OVF, 0);
	put_stretch(&fixture->bytes, 3000);
	begin(fixture, &config);
	next(fixture);
	assert_true(next(fixture)->context.in_tx);
	assert_false(next(fixture)->context.in_tx);
}

static void a_snapshot_begins_at_its_first_psb(void **state)
{
	struct fixture *fixture = *state;
	struct pt_config snapshot = config;

	snapshot.snapshot = true;
	pt_put_bytes(&fixture->bytes, "\x81\xc9\x59", 3);
	put_stretch(&fixture->bytes, 1000);
	begin(fixture, &snapshot);
	assert_int_equal(next(fixture)->from, 3);
	assert_end(fixture);
}

static void an_empty_queue_has_an_empty_segment(void **state)
{
	struct fixture *fixture = *state;
	const struct pt_segment *segment;

	pt_walk_init(&fixture->walk, &fixture->bench.queue, &config, NULL, 0);
	segment = next(fixture);
	assert_int_equal(segment->from, segment->to);
	assert_end(fixture);
}

/* What the PSB+ says: tracing is enabled, there is a time. */
enum { ENABLED = 1, TIMED = 2 };

static void put_group(struct pt_bytes *bytes, uint64_t cr3, unsigned flags)
{
	pt_put_psb(bytes);
	if (flags & TIMED)
		pt_put_value(bytes, PT_TSC, 1000);
	pt_put_value(bytes, PT_MODE_TSX, 0);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = cr3 });
	pt_put_value(bytes, PT_VMCS, 1);
	if (flags & ENABLED) {
		pt_put_value(bytes, PT_MODE_EXEC, PT_EXEC_CS_L);
		pt_put_ip(bytes, PT_FUP, 0x401000, 3);
	}
	pt_put_value(bytes, PT_PSBEND, 0);
}

/* Whether the walk leaps over packets to the PSB+ behind them. If it did not read them, the second
 * segment has the context of its own PSB+. */
static bool leaps_over(const void *packets, size_t size, unsigned flags, size_t second_span)
{
	struct bench_queue bench = { .room = 0 };
	struct pt_bytes bytes = { 0 };
	struct pt_segment segment;
	struct pt_walk walk;
	uint64_t position;

	put_group(&bytes, 0x1000, ENABLED);
	pt_put_bytes(&bytes, packets, size);
	position = bytes.size;
	put_group(&bytes, 0x2000, flags);
	bench_queue_add(&bench, bytes.data, bytes.size - second_span, false);
	bench_queue_add(&bench, bytes.data + bytes.size - second_span, second_span, false);
	pt_walk_init(&walk, &bench.queue, &config, NULL, 0);
	walk.leaps = true;
	assert_int_equal(pt_walk_next(&walk, &segment), 0);
	assert_int_equal(segment.to, position);
	assert_int_equal(pt_walk_next(&walk, &segment), 0);
	assert_int_equal(segment.from, position);
	assert_int_equal(walk.context.bits, 64);
	assert_int_equal(walk.context.cr3, 0x2000);
	bench_queue_free(&bench);
	pt_bytes_free(&bytes);
	return segment.context.cr3 == 0x2000;
}

static void without_time_the_walk_leaps_from_context_to_context(void **state)
{
	/* MODE.Exec: to 16 bits and back to 64; bytes of a TIP that might be one, to 64 */
	static const uint8_t flow[] = { 12, 12 }, modes[] = { 0x99, 0, 0x99, 1 },
			     tip[] = { 0x2d, 0x99, 1 };
	enum { GROUP = 44 };

	assert_true(leaps_over(flow, sizeof(flow), ENABLED, 0));
	assert_true(leaps_over(flow, sizeof(flow), 0, 0));
	assert_true(leaps_over(modes, sizeof(modes), ENABLED, 0));
	assert_true(leaps_over(tip, sizeof(tip), 0, 0));
	assert_true(leaps_over(flow, sizeof(flow), ENABLED, GROUP - PT_PSB_SIZE));
	assert_false(leaps_over(flow, sizeof(flow), ENABLED, GROUP + 1)); /* another span */
	assert_false(leaps_over(modes, sizeof(modes), 0, 0));
	assert_false(leaps_over(flow, sizeof(flow), ENABLED | TIMED, 0));
}

/* A PSB+ that does not tell the mode is passed over where the mode may have changed before it. */
static void a_leap_ends_where_the_mode_is_told(void **state)
{
	static const uint8_t modes[] = { 0x99, 0, 0x99, 1 };
	struct fixture *fixture = *state;
	uint64_t position;

	put_group(&fixture->bytes, 0x1000, ENABLED);
	pt_put_bytes(&fixture->bytes, modes, sizeof(modes));
	put_group(&fixture->bytes, 0x2000, 0);
	put_group(&fixture->bytes, 0x3000, 0);
	position = fixture->bytes.size;
	put_group(&fixture->bytes, 0x4000, ENABLED);
	begin(fixture, &config);
	fixture->walk.leaps = true;
	assert_int_equal(next(fixture)->to, position);
	assert_int_equal(next(fixture)->context.cr3, 0x4000);
}

static void cycles_count_once_and_in_their_order(void **state)
{
	struct fixture *fixture = *state;
	struct pt_bytes *bytes = &fixture->bytes;

	pt_put_psb(bytes);
	pt_put_value(bytes, PT_TSC, 1000);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_TMA });
	pt_put_value(bytes, PT_PSBEND, 0);
	pt_put_value(bytes, PT_MTC, 1); /* of 16 ticks */
	pt_put_value(bytes, PT_CYC, 8);
	pt_put_value(bytes, PT_MTC, 2);
	pt_put_value(bytes, PT_CYC, 4);
	put_stretch(bytes, 2000);
	begin(fixture, &config);
	(void)next(fixture);
	assert_int_equal(next(fixture)->clock.now, 1000 + 2 * 16 + 4 * 2);
}

/* One flipped bit in a CYC must not set the time of all that follows. */
static void a_cyc_that_leads_behind_the_end_of_tracing_is_left_out(void **state)
{
	const struct pt_config with_cycles = { .tsc = true, .cyc = true, .max_nonturbo = 20 };
	struct fixture *fixture = *state;

	put_stretch(&fixture->bytes, 1000);
	pt_put_value(&fixture->bytes, PT_CBR, 20);
	pt_put_value(&fixture->bytes, PT_CYC, UINT64_C(1) << 40);
	put_stretch(&fixture->bytes, 3000000);
	put_stretch(&fixture->bytes, 3000100);
	begin(fixture, &with_cycles);
	fixture->bench.spans[0].reference = 4000000;
	(void)next(fixture);
	assert_int_equal(next(fixture)->clock.now, 1000);
	assert_int_equal(next(fixture)->clock.now, 3000000);
	assert_end(fixture);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(segments_cover_the_queue_from_psb_to_psb),
		TEST(a_segment_begins_with_clock_and_context_of_the_former),
		TEST(a_loss_begins_a_fresh_segment),
		TEST(a_loss_ends_in_the_host),
		TEST(behind_a_bad_byte_the_walk_goes_on_at_the_next_psb),
		TEST(a_psb_that_does_not_end_is_as_a_bad_byte),
		TEST(an_overflow_ends_a_transaction),
		TEST(a_snapshot_begins_at_its_first_psb),
		TEST(an_empty_queue_has_an_empty_segment),
		TEST(a_cyc_that_leads_behind_the_end_of_tracing_is_left_out),
		TEST(cycles_count_once_and_in_their_order),
		TEST(a_leap_ends_where_the_mode_is_told),
		cmocka_unit_test(without_time_the_walk_leaps_from_context_to_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
