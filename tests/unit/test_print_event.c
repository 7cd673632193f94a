#include "decode/print/print_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/print_branch.h"
#include "decode/print/sample_flags.h"
#include "tests/flow_bench.h"
#include "tests/print_bench.h"

/* One gap or packet at a time; their lines among others are in test_printer.c. */

static void event(struct print_bench *bench, enum pt_packet_kind kind, unsigned extra,
		  uint64_t payload)
{
	bench->printer.event = (struct flow_item){
		.kind = FLOW_EVENT, .extra = (uint16_t)extra, .count = kind, .value = 0x1000
	};
	print_event(&bench->printer, payload);
}

/* The words of a packet, without the blanks that fill them up. */
static void assert_words(const char *letters, enum pt_packet_kind kind, uint64_t payload,
			 const char *expected)
{
	struct print_bench *bench = print_bench_new(FIELD_SYNTH, letters);
	struct text *out = &bench->printer.out;

	event(bench, kind, 0, payload);
	while (out->size && strchr(" \n", out->data[out->size - 1]))
		out->size--;
	print_bench_expect(bench, expected);
	print_bench_free(bench);
}

static void packets_about_power_have_words(void **state)
{
	assert_words("p", PT_CBR, 24, " cbr: 24 freq: 2400 MHz");
	assert_words("p", PT_PSB, 0x1234, " psb offs: 0x1234");
	assert_words("p", PT_MWAIT, 0x300000051, " hints: 0x51 extensions: 0x3");
	assert_words("p", PT_MWAIT, 0xfffffff4ffffff51, " hints: 0x51 extensions: 0");
	assert_words("p", PT_PWRE, 0xb580, " hw: 1 cstate: 11 sub-cstate: 5");
	assert_words("p", PT_EXSTOP, 0, " IP: 0");
	assert_words("p", PT_PWRX, 0x9b7, " deepest cstate: 7 last cstate: 11 wake reason: 0x9");
}

static void the_words_of_others_need_their_letters(void **state)
{
	static const enum pt_packet_kind power[] = { PT_CBR,  PT_PSB,    PT_MWAIT,
						     PT_PWRE, PT_EXSTOP, PT_PWRX };

	for (size_t i = 0; i < sizeof(power) / sizeof(*power); i++)
		assert_words("wIb", power[i], 1, "");
	assert_words("pIb", PT_PTW, 1, "");
	assert_words("w", PT_PTW, 1, " IP: 0 payload: 0x1");
	assert_words("pwb", PT_CFE, 1, "");
	assert_words("pwI", PT_TMA, 1, "");
}

static void a_frequency_is_a_part_of_the_nominal_one(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_SYNTH, "p");

	bench->pt.max_nonturbo = 20;
	event(bench, PT_CBR, 0, 25);
	print_bench_expect(bench, " cbr: 25 freq: 2500 MHz (125%)    \n");
	bench->pt.max_nonturbo = 8;
	event(bench, PT_CBR, 0, 7);
	print_bench_expect(bench, " cbr:  7 freq:  700 MHz ( 88%)    \n");
	bench->pt.max_nonturbo = 26;
	bench->pt.nominal_hz = 2592000000;
	event(bench, PT_CBR, 0, 40); /* the bus clock is 99.69 MHz */
	print_bench_expect(bench, " cbr: 40 freq: 3988 MHz (154%)    \n");
	print_bench_free(bench);
}

/* SDM "Control Flow Event Packet": types by number. */
static void control_flow_events_have_names_or_numbers(void **state)
{
	static const char *const names[] = {
		"0",       "INTR",   "IRET",        "SMI",      "RSM", "SIPI",  "INIT",
		"VMENTRY", "VMEXIT", "VMEXIT_INTR", "SHUTDOWN", "11",  "UINTR", "UIRET",
	};
	char expected[64];

	for (uint64_t type = 0; type < sizeof(names) / sizeof(*names); type++) {
		(void)snprintf(expected, sizeof(expected), " cfe: %s IP: 0 vector: 0", names[type]);
		assert_words("I", PT_CFE, type, expected);
	}
	assert_words("I", PT_CFE, 31, " cfe: 31 IP: 0 vector: 0");
	assert_words("I", PT_CFE, 32, " cfe: 0 IP: 0 vector: 0");
}

static void why_a_guest_exited_is_told_with_it(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_SYNTH, "I");

	event(bench, PT_EVD, 1, 0x18);
	event(bench, PT_EVD, 2, 48);
	event(bench, PT_EVD, 3, 5);
	event(bench, PT_CFE, 0, 8);
	event(bench, PT_CFE, 0, 8);
	print_bench_expect(bench, " cfe: VMEXIT IP: 0 vector: 0 VMXQ: 0x18 VMXR: 0x30 EVD_3: 0x5\n"
				  " cfe: VMEXIT IP: 0 vector: 0      \n");
	print_bench_free(bench);
}

static void data_without_an_event_does_not_pile_up(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_SYNTH, "I");

	for (unsigned i = 0; i < 100000; i++)
		event(bench, PT_EVD, 63, UINT64_MAX);
	assert_true(bench->printer.event_data.size < 2200);
	event(bench, PT_CFE, 0xffff, 8);
	assert_true(bench->printer.out.size < 2300);
	assert_int_equal(bench->printer.out.data[bench->printer.out.size - 1], '\n');
	assert_int_equal(bench->printer.event_data.size, 0);
	print_bench_free(bench);
}

static void events_show_the_instruction_at_their_address(void **state)
{
	static const uint8_t mwait[] = { 0x0f, 0x01, 0xc9 };
	const uint64_t kernel = 0xffffffff81000000;
	struct print_bench *bench = print_bench_new(FIELD_INSNLEN | FIELD_INSN, "px");

	assert_true(bench_add_code(bench->machines.host, kernel, mwait, sizeof(mwait)));
	bench->printer.event =
		(struct flow_item){ .kind = FLOW_EVENT, .count = PT_EXSTOP, .value = kernel };
	print_event(&bench->printer, 0);
	bench->printer.ip = kernel;
	print_transaction(&bench->printer);
	print_bench_expect(bench, " ilen: 3 insn: 0f 01 c9\n ilen: 3 insn: 0f 01 c9\n");
	print_bench_free(bench);
}

static void an_event_has_the_fields_of_other_lines(void **state)
{
	struct print_bench *bench =
		print_bench_new(FIELD_CPU | FIELD_EVENT | FIELD_IP | FIELD_INSNLEN, "p");

	event(bench, PT_EXSTOP, 0, 0);
	print_bench_expect(bench, "[001]       exstop:              1000 ilen: 0\n");
	bench->config.event_period = true;
	event(bench, PT_EXSTOP, 0, 0);
	print_bench_expect(bench, "[001]          1       exstop:              1000 ilen: 0\n");
	bench->config.insn_addr = true;
	bench->config.event_period = false;
	event(bench, PT_EXSTOP, 0, 0);
	print_bench_expect(bench,
			   "[001]       exstop:                0             1000 ilen: 0\n");
	print_bench_free(bench);
}

/* A packet without an address comes between the traces of two threads. */
static void a_packet_without_an_address_is_the_next_threads(void **state)
{
	static const struct switch_entry next = { .time = 10, .settled = 20, .pid = 7, .tid = 99 };
	struct print_bench *bench = print_bench_new(FIELD_TID | FIELD_FLAGS, "pb");

	bench->printer.where.pid = -1;
	bench->printer.where.switches = &next;
	bench->printer.where.switch_count = 1;
	bench->printer.time_ns = bench->printer.told_ns = 15;
	event(bench, PT_CBR, 0, 1);
	assert_int_equal(bench->printer.thread.tid, -1);
	print_branch_from(&bench->printer, 0x1000, SAMPLE_BRANCH); /* is of the thread before */
	print_branch_to(&bench->printer, 0x2000);
	bench->printer.event.value = 0;
	print_event(&bench->printer, 1);
	assert_int_equal(bench->printer.thread.tid, 99);
	print_bench_expect(bench, "   -1                         \n"
				  "   -1   jmp                   \n"
				  "   99                         \n");
	print_bench_free(bench);
}

/* Where no code is followed it does not tell when the kernel switches. */
static void without_branches_events_are_the_next_threads(void **state)
{
	static const struct switch_entry next = { .time = 10, .settled = 20, .pid = 7, .tid = 99 };

	for (unsigned i = 0; i < 2; i++) {
		struct print_bench *bench = print_bench_new(FIELD_TID, "pb");

		bench->printer.where.pid = -1;
		bench->printer.where.switches = &next;
		bench->printer.where.switch_count = 1;
		bench->printer.time_ns = bench->printer.told_ns = 15;
		bench->pt.no_branches = i;
		event(bench, PT_CBR, 0, 1);
		assert_int_equal(bench->printer.thread.tid, i ? 99 : -1);
		print_bench_free(bench);
	}
}

static void gap(struct print_bench *bench, enum gap_kind kind)
{
	bench->printer.gap.kind = kind;
	print_gap(&bench->printer, 0x1000);
}

static uint64_t gaps_printed(const char *letters)
{
	struct print_bench *bench = print_bench_new(FIELD_IP, letters);
	uint64_t lines;

	for (unsigned kind = 0; kind < GAP_KINDS; kind++)
		gap(bench, (enum gap_kind)kind);
	lines = bench->printer.lines;
	print_bench_free(bench);
	return lines;
}

static void gaps_are_chosen_by_their_letters(void **state)
{
	assert_int_equal(gaps_printed("b"), 0);
	assert_int_equal(gaps_printed("e"), GAP_KINDS);
	assert_int_equal(gaps_printed("e-o"), GAP_KINDS - 1);
	assert_int_equal(gaps_printed("e-l"), GAP_KINDS - 1);
	assert_int_equal(gaps_printed("e-o-l"), GAP_KINDS - 2);
}

/* Scripts look for them. */
static void gaps_have_the_numbers_of_perf(void **state)
{
	static const unsigned codes[GAP_KINDS] = {
		[GAP_BAD_PACKET] = 3, [GAP_NO_CODE] = 5, [GAP_MISMATCH] = 6,  [GAP_OVERFLOW] = 7,
		[GAP_LOST] = 8,       [GAP_LOOP] = 10,   [GAP_NO_MEMORY] = 1, [GAP_THUNK] = 5,
	};

	for (unsigned kind = 0; kind < GAP_KINDS; kind++)
		assert_int_equal(gap_code((enum gap_kind)kind), codes[kind]);
}

static void a_gap_says_when_and_where_in_the_file(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP, "e");
	struct aux_span span = { .size = 100, .file_offset = 0x5000 };

	bench->queue.spans = &span;
	bench->queue.count = 1;
	bench->queue.size = 100;
	bench->queue.index = 3;
	bench->config.color = true;
	bench->printer.time_ns = 1999999999;
	bench->printer.gap.position = 0x10;
	gap(bench, GAP_MISMATCH);
	assert_non_null(strstr(bench->printer.out.data, " time 1.999999999 cpu 1 "));
	assert_non_null(strstr(bench->printer.out.data, " (queue 3, file offset 0x5010)\033[0m\n"));
	assert_memory_equal(bench->printer.out.data, "\033[31m instruction trace error", 28);
	print_bench_free(bench);
}

static void the_interrupt_flag_needs_its_letter(void **state)
{
	const struct flow_item to = { .kind = FLOW_TO, .value = 0x5678 };
	struct print_bench *bench = print_bench_new(FIELD_SYNTH, "p");

	print_interrupt_flag(&bench->printer, &to);
	assert_int_equal(bench->printer.lines, 0);
	print_bench_free(bench);
	bench = print_bench_new(FIELD_EVENT | FIELD_IP | FIELD_SYNTH, "I");
	bench->printer.ip = 0x1234;
	bench->config.insn_addr = true;
	print_interrupt_flag(&bench->printer, &to);
	bench->printer.context.if_clear = true;
	print_interrupt_flag(&bench->printer, NULL);
	print_bench_expect(bench, "       iflag:  IFLAG: 0->1 via branch                       "
				  "5678             1234\n"
				  "       iflag:  IFLAG: 1->0 non branch                          "
				  "0             1234\n");
	print_bench_free(bench);
}

static void a_transaction_begins_ends_or_is_aborted(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_FLAGS | FIELD_EVENT | FIELD_PERIOD, "x");

	bench->printer.context.in_tx = true;
	print_transaction(&bench->printer);
	bench->printer.context.in_tx = false;
	print_transaction(&bench->printer);
	bench->printer.is_aborting = true;
	print_transaction(&bench->printer);
	print_bench_expect(bench, "         1 transactions:   x                     \n"
				  "         1 transactions:                         \n"
				  "         1 transactions:   tx abrt               \n");
	print_bench_free(bench);
	bench = print_bench_new(FIELD_CPU | FIELD_IP, "x");
	bench->printer.ip = 0x1234;
	print_transaction(&bench->printer);
	print_bench_expect(bench, "[001]              1234\n");
	print_bench_free(bench);
	bench = print_bench_new(FIELD_EVENT, "p");
	print_transaction(&bench->printer);
	assert_int_equal(bench->printer.lines, 0);
	print_bench_free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_about_power_have_words),
		cmocka_unit_test(the_words_of_others_need_their_letters),
		cmocka_unit_test(a_frequency_is_a_part_of_the_nominal_one),
		cmocka_unit_test(control_flow_events_have_names_or_numbers),
		cmocka_unit_test(why_a_guest_exited_is_told_with_it),
		cmocka_unit_test(data_without_an_event_does_not_pile_up),
		cmocka_unit_test(events_show_the_instruction_at_their_address),
		cmocka_unit_test(an_event_has_the_fields_of_other_lines),
		cmocka_unit_test(a_packet_without_an_address_is_the_next_threads),
		cmocka_unit_test(without_branches_events_are_the_next_threads),
		cmocka_unit_test(gaps_are_chosen_by_their_letters),
		cmocka_unit_test(gaps_have_the_numbers_of_perf),
		cmocka_unit_test(a_gap_says_when_and_where_in_the_file),
		cmocka_unit_test(the_interrupt_flag_needs_its_letter),
		cmocka_unit_test(a_transaction_begins_ends_or_is_aborted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
