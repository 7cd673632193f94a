#include "decode/pt/pt_cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

static const struct pt_config no_config = { .tsc = false };

struct fixture {
	struct pt_bytes bytes;
	struct bench_queue bench;
	struct pt_cursor cursor;
};

/* The bytes written so far, in spans of `span`. */
static void begin(struct fixture *fixture, const struct pt_config *config, size_t span)
{
	for (size_t from = 0; from < fixture->bytes.size; from += span) {
		size_t left = fixture->bytes.size - from;

		bench_queue_add(&fixture->bench, fixture->bytes.data + from,
				left < span ? left : span, false);
	}
	pt_cursor_init(&fixture->cursor, &fixture->bench.queue, config, 0);
}

static void end(struct fixture *fixture)
{
	bench_queue_free(&fixture->bench);
	pt_bytes_free(&fixture->bytes);
}

static void assert_next(struct fixture *fixture, enum pt_packet_kind kind)
{
	struct pt_packet packet;

	assert_int_equal(pt_cursor_next(&fixture->cursor, &packet), 0);
	assert_int_equal(packet.kind, kind);
}

static void packets_are_read_over_any_cut_and_padding_is_not(void **state)
{
	for (size_t span = 1; span < 80; span++) {
		struct fixture fixture = { .bench = { .room = 0 } };
		struct pt_packet packet;

		pt_put_psb(&fixture.bytes);
		pt_put_value(&fixture.bytes, PT_TSC, 0x123456);
		for (int i = 0; i < 37; i++)
			pt_put_value(&fixture.bytes, PT_PAD, 0);
		pt_put_ip(&fixture.bytes, PT_TIP, 0xffffffff81000000, 6);
		pt_put_value(&fixture.bytes, PT_PAD, 0);
		begin(&fixture, &no_config, span);
		assert_next(&fixture, PT_PSB);
		assert_next(&fixture, PT_TSC);
		assert_int_equal(pt_cursor_position(&fixture.cursor), 24);
		assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), 0);
		assert_int_equal(pt_cursor_ip(&fixture.cursor, &packet), 0xffffffff81000000);
		assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_END);
		assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_END);
		end(&fixture);
	}
}

static void a_packet_cut_by_the_end_is_the_end(void **state)
{
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_packet packet;

	pt_put_bytes(&fixture.bytes, "\x19\x01\x02", 3);
	begin(&fixture, &no_config, 2);
	assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_END);
	assert_int_equal(pt_cursor_position(&fixture.cursor), 3);
	end(&fixture);
}

static void a_packet_cut_by_a_loss_is_given_up(void **state)
{
	struct bench_queue bench = { .room = 0 };
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_packet packet;

	bench_queue_add(&bench, (const uint8_t *)"\x59\x01\x19\x02", 4, false);
	bench_queue_add(&bench, (const uint8_t *)"\x59\x02", 2, true);
	fixture.bench = bench;
	pt_cursor_init(&fixture.cursor, &fixture.bench.queue, &no_config, 0);
	assert_next(&fixture, PT_MTC);
	assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_INCONSISTENT);
	assert_int_equal(pt_cursor_position(&fixture.cursor), 4);
	assert_next(&fixture, PT_MTC);
	end(&fixture);
}

/* The last packet before it may begin in another span than it ends in. */
static void a_loss_behind_a_packet_in_two_spans_is_not_passed_over(void **state)
{
	static const uint8_t tsc[] = { 0x19, 1, 2, 3, 4, 5, 6, 7 };
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_packet packet;

	for (size_t first = 1; first <= sizeof(tsc); first++) {
		struct bench_queue bench = { .room = 0 };

		bench_queue_add(&bench, tsc, first, false);
		if (first < sizeof(tsc))
			bench_queue_add(&bench, tsc + first, sizeof(tsc) - first, false);
		bench_queue_add(&bench, (const uint8_t *)"\x59\x02", 2, true);
		fixture.bench = bench;
		pt_cursor_init(&fixture.cursor, &fixture.bench.queue, &no_config, 0);
		assert_next(&fixture, PT_TSC);
		assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_INCONSISTENT);
		assert_next(&fixture, PT_MTC);
		end(&fixture);
	}
}

static void at_a_bad_byte_the_cursor_stays(void **state)
{
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_packet packet;

	pt_put_bytes(&fixture.bytes, "\x59\x01\xc9", 3);
	begin(&fixture, &no_config, 9);
	assert_next(&fixture, PT_MTC);
	assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_BAD_PACKET);
	assert_int_equal(pt_cursor_position(&fixture.cursor), 2);
	end(&fixture);
}

static void a_tma_of_SKZ84_is_stepped_over_on_its_models(void **state)
{
	static const uint8_t bytes[] = { 0x02, 0x73, 1, 2, 3, 4, 0xff, 0xc9, 0x59, 7 };
	static const struct pt_config skylake_x = { .cpu_family = 6, .cpu_model = 0x55 };
	static const struct pt_config other = { .cpu_family = 15, .cpu_model = 0x55 };
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_packet packet;

	pt_put_bytes(&fixture.bytes, bytes, sizeof(bytes));
	begin(&fixture, &skylake_x, sizeof(bytes));
	assert_next(&fixture, PT_MTC);
	pt_cursor_init(&fixture.cursor, &fixture.bench.queue, &other, 0);
	assert_int_equal(pt_cursor_next(&fixture.cursor, &packet), -PTVM_BAD_PACKET);
	end(&fixture);
}

static void an_overflow_in_a_cyc_of_SKD007_is_told_on_its_models(void **state)
{
	struct pt_config config = { .cpu_family = 6, .cpu_model = 0x5e };
	struct fixture fixture = { .bench = { .room = 0 } };

	for (size_t span = 1; span < 6; span++) {
		pt_put_bytes(&fixture.bytes, "\x0f\x02\xf3\x59\x01", 5);
		begin(&fixture, &config, span);
		assert_next(&fixture, PT_OVF);
		assert_next(&fixture, PT_MTC);
		pt_cursor_init(&fixture.cursor, &fixture.bench.queue, &no_config, 0);
		assert_next(&fixture, PT_CYC);
		assert_next(&fixture, PT_CYC);
		assert_next(&fixture, PT_MTC);
		end(&fixture);
	}
	pt_put_bytes(&fixture.bytes, "\x0f\x02\x59\x01\x0f\x02", 6); /* without OVF */
	begin(&fixture, &config, 9);
	assert_next(&fixture, PT_CYC);
	assert_next(&fixture, PT_MTC);
	assert_next(&fixture, PT_CYC);
	end(&fixture);
}

static void a_psb_group_states_all_it_has(void **state)
{
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_bytes *bytes = &fixture.bytes;
	struct pt_psb_state psb;

	pt_put_value(bytes, PT_MTC, 1);
	pt_put_psb(bytes);
	pt_put_value(bytes, PT_TSC, 1000);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_TMA, .payload = 7, .count = 9 });
	pt_put_ip(bytes, PT_FUP, 0x401000, 3);
	pt_put_value(bytes, PT_CBR, 21);
	pt_put(bytes, &(struct pt_packet){ .kind = PT_PIP, .payload = 0x5000, .flag = true });
	pt_put_value(bytes, PT_VMCS, 0x123);
	pt_put_value(bytes, PT_MODE_EXEC, 1);
	pt_put_value(bytes, PT_MODE_TSX, 1);
	pt_put_value(bytes, PT_PSBEND, 0);
	pt_put_value(bytes, PT_MTC, 1);
	begin(&fixture, &no_config, 11);
	assert_next(&fixture, PT_MTC);
	assert_next(&fixture, PT_PSB);
	assert_int_equal(pt_cursor_psb(&fixture.cursor, &psb), 0);
	assert_int_equal(psb.position, 2);
	assert_int_equal(psb.tsc_position, 18);
	assert_true(psb.have_tsc && psb.have_pip && psb.have_vmcs && psb.have_exec);
	assert_true(psb.have_tsx && psb.have_ip && psb.have_cbr && psb.tsc.have_tma);
	assert_int_equal(psb.tsc.tsc, 1000);
	assert_int_equal(psb.tsc.ctc, 7);
	assert_int_equal(psb.tsc.fast, 9);
	assert_int_equal(psb.cbr, 21);
	assert_int_equal(psb.cr3, 0x5000);
	assert_true(psb.nr && psb.in_tx);
	assert_int_equal(psb.vmcs, 0x123);
	assert_int_equal(psb.ip, 0x401000);
	assert_next(&fixture, PT_MTC);
	end(&fixture);
}

static void a_fup_before_pge_is_no_ip(void **state)
{
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_psb_state psb;

	pt_put_psb(&fixture.bytes);
	pt_put_ip(&fixture.bytes, PT_FUP, 0x401000, 3);
	pt_put_value(&fixture.bytes, PT_PSBEND, 0);
	pt_put_value(&fixture.bytes, PT_MTC, 1);
	pt_put_ip(&fixture.bytes, PT_TIP_PGE, 0x401000, 3);
	begin(&fixture, &no_config, 7);
	assert_next(&fixture, PT_PSB);
	assert_int_equal(pt_cursor_psb(&fixture.cursor, &psb), 0);
	assert_false(psb.have_ip);
	assert_next(&fixture, PT_MTC);
	end(&fixture);
}

static void a_group_ends_at_what_may_not_be_in_it(void **state)
{
	struct fixture fixture = { .bench = { .room = 0 } };
	struct pt_psb_state psb;

	pt_put_psb(&fixture.bytes);
	pt_put_value(&fixture.bytes, PT_CBR, 21);
	pt_put_value(&fixture.bytes, PT_OVF, 0);
	pt_put_psb(&fixture.bytes);
	pt_put_ip(&fixture.bytes, PT_TIP, 0x401000, 3);
	begin(&fixture, &no_config, 100);
	assert_next(&fixture, PT_PSB);
	assert_int_equal(pt_cursor_psb(&fixture.cursor, &psb), 0);
	assert_false(psb.have_ip);
	assert_next(&fixture, PT_OVF);
	assert_next(&fixture, PT_PSB);
	assert_int_equal(pt_cursor_psb(&fixture.cursor, &psb), -PTVM_BAD_PACKET);
	assert_next(&fixture, PT_TIP);
	end(&fixture);
}

static void a_loss_right_behind_a_tsc_is_not_passed_over(void **state)
{
	struct pt_bytes before = { 0 }, behind = { 0 };
	struct bench_queue bench = { 0 };
	struct pt_tsc_group group = { .tsc = 0 };
	struct pt_cursor cursor;
	struct pt_packet packet;

	pt_put_value(&before, PT_TSC, 0x123456);
	pt_put_psb(&behind);
	bench_queue_add(&bench, before.data, before.size, false);
	bench_queue_add(&bench, behind.data, behind.size, true);
	pt_cursor_init(&cursor, &bench.queue, &no_config, 0);
	assert_int_equal(pt_cursor_next(&cursor, &packet), 0);
	assert_int_equal(packet.kind, PT_TSC);
	pt_cursor_tma(&cursor, &group);
	assert_int_equal(pt_cursor_next(&cursor, &packet), -PTVM_INCONSISTENT);
	assert_int_equal(pt_cursor_next(&cursor, &packet), 0);
	assert_int_equal(packet.kind, PT_PSB);
	bench_queue_free(&bench);
	pt_bytes_free(&before);
	pt_bytes_free(&behind);
}

static void a_loss_right_behind_a_group_is_not_passed_over(void **state)
{
	struct pt_bytes before = { 0 }, behind = { 0 };
	struct bench_queue bench = { 0 };
	struct pt_psb_state group;
	struct pt_cursor cursor;
	struct pt_packet packet;

	pt_put_psb(&before);
	pt_put_ip(&before, PT_FUP, 0x401000, 6);
	pt_put_value(&before, PT_PSBEND, 0);
	pt_put_ip(&behind, PT_TIP_PGE, 0x401000, 6);
	bench_queue_add(&bench, before.data, before.size, false);
	bench_queue_add(&bench, behind.data, behind.size, true);
	pt_cursor_init(&cursor, &bench.queue, &no_config, 0);
	assert_int_equal(pt_cursor_next(&cursor, &packet), 0);
	assert_int_equal(pt_cursor_psb(&cursor, &group), 0);
	assert_true(group.have_ip);
	assert_int_equal(pt_cursor_next(&cursor, &packet), -PTVM_INCONSISTENT);
	bench_queue_free(&bench);
	pt_bytes_free(&before);
	pt_bytes_free(&behind);
}

static void a_tsc_finds_its_tma_behind_other_timing_packets(void **state)
{
	struct pt_tsc_group group = { .have_tma = false };
	struct fixture fixture = { .bench = { .room = 0 } };

	pt_put_value(&fixture.bytes, PT_TSC, 5);
	pt_put_value(&fixture.bytes, PT_MTC, 1);
	pt_put(&fixture.bytes, &(struct pt_packet){ .kind = PT_TMA, .payload = 7, .count = 9 });
	pt_put_value(&fixture.bytes, PT_TSC, 5);
	pt_put_value(&fixture.bytes, PT_OVF, 0); /* the next TMA is that of a lost TSC */
	pt_put(&fixture.bytes, &(struct pt_packet){ .kind = PT_TMA, .payload = 7, .count = 9 });
	begin(&fixture, &no_config, 3);
	assert_next(&fixture, PT_TSC);
	pt_cursor_tma(&fixture.cursor, &group);
	assert_true(group.have_tma);
	assert_int_equal(group.ctc, 7);
	assert_next(&fixture, PT_MTC); /* is still to be counted */
	assert_next(&fixture, PT_TMA);
	assert_next(&fixture, PT_TSC);
	group.have_tma = false;
	pt_cursor_tma(&fixture.cursor, &group);
	assert_false(group.have_tma);
	assert_next(&fixture, PT_OVF);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_read_over_any_cut_and_padding_is_not),
		cmocka_unit_test(a_packet_cut_by_the_end_is_the_end),
		cmocka_unit_test(a_packet_cut_by_a_loss_is_given_up),
		cmocka_unit_test(a_loss_behind_a_packet_in_two_spans_is_not_passed_over),
		cmocka_unit_test(at_a_bad_byte_the_cursor_stays),
		cmocka_unit_test(a_tma_of_SKZ84_is_stepped_over_on_its_models),
		cmocka_unit_test(an_overflow_in_a_cyc_of_SKD007_is_told_on_its_models),
		cmocka_unit_test(a_psb_group_states_all_it_has),
		cmocka_unit_test(a_fup_before_pge_is_no_ip),
		cmocka_unit_test(a_group_ends_at_what_may_not_be_in_it),
		cmocka_unit_test(a_loss_right_behind_a_tsc_is_not_passed_over),
		cmocka_unit_test(a_loss_right_behind_a_group_is_not_passed_over),
		cmocka_unit_test(a_tsc_finds_its_tma_behind_other_timing_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
