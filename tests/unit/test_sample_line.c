/* sample_line: samples of other events as lines, where no symbols are known. */
#include "decode/print/sample_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

enum {
	HARDWARE_TYPE = 0,
	SOFTWARE_TYPE = 1,
	TRACEPOINT_TYPE = 2,
	COMMON = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	WHERE = FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT,
	IP = 0x401000,
	ADDRESS = 0x7000,
};

/* One sample of one event; its body grows by put(). */
struct bench {
	struct perf_event event;
	struct perf_data data;
	struct print_config config;
	struct machines machines;
	struct sideband *sideband;
	struct perf_record record;
	uint8_t bytes[4096];
	size_t used;
	struct sample_origin origin;
	struct tracepoint_text points;
	struct text text;
};

static void put(struct bench *bench, uint64_t value)
{
	assert_true(bench->used + 8 <= sizeof(bench->bytes));
	memcpy(bench->bytes + bench->used, &value, 8);
	bench->used += 8;
}

/* A sample of thread 6/7 on CPU 2 at 1.5 s, with the fields up to ADDR in the kernel's order. */
static struct bench *bench_new(uint32_t type, uint64_t sample_type, uint32_t fields)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));

	bench->event = (struct perf_event){
		.type = type, .sample_type = sample_type, .sample_period = 4000, .name = "cycles"
	};
	bench->data.events.items = &bench->event;
	bench->data.events.count = 1;
	bench->machines.host = machine_new(0, false);
	assert_int_equal(sideband_build(&bench->data, &bench->sideband), 0);
	bench->config = (struct print_config){ .data = &bench->data,
					       .machines = &bench->machines,
					       .sideband = bench->sideband,
					       .name_width = 8 };
	for (int kind = 0; kind < EVENT_KINDS; kind++)
		bench->config.sample_fields[kind] = fields;
	bench->record = (struct perf_record){ .data = bench->bytes,
					      .time = 1500000000,
					      .pid = 6,
					      .tid = 7,
					      .cpu = 2,
					      .type = PERF_SAMPLE };
	put(bench, 0); /* the header */
	if (sample_type & PERF_SAMPLE_IP)
		put(bench, IP);
	if (sample_type & PERF_SAMPLE_TID)
		put(bench, 6 | UINT64_C(7) << 32);
	if (sample_type & PERF_SAMPLE_TIME)
		put(bench, 1500000000);
	if (sample_type & PERF_SAMPLE_ADDR)
		put(bench, ADDRESS);
	if (sample_type & PERF_SAMPLE_CPU)
		put(bench, 2);
	return bench;
}

static void prints(struct bench *bench, const char *expected)
{
	bench->record.size = (uint16_t)bench->used;
	sample_line_add(&bench->text, &bench->config, &bench->record, &bench->origin,
			&bench->points);
	text_putc(&bench->text, 0);
	assert_string_equal(bench->text.data, expected);
	text_free(&bench->text);
	sideband_free(bench->sideband);
	machines_free(&bench->machines);
	test_free(bench);
}

static void kinds_are_those_of_the_kernel(void **state)
{
	static const enum event_kind kinds[] = { EVENT_HARDWARE, EVENT_SOFTWARE, EVENT_TRACEPOINT,
						 EVENT_HARDWARE, EVENT_RAW,      EVENT_BREAKPOINT,
						 EVENT_OTHER,    EVENT_OTHER };

	for (uint32_t type = 0; type < 8; type++)
		assert_int_equal(sample_kind(&(struct perf_event){ .type = type }), kinds[type]);
}

static void the_trace_and_dummies_have_no_samples(void **state)
{
	assert_true(sample_is_expected(&(struct perf_event){ .type = SOFTWARE_TYPE }));
	assert_true(sample_is_expected(&(struct perf_event){ .type = HARDWARE_TYPE, .config = 9 }));
	assert_false(
		sample_is_expected(&(struct perf_event){ .type = SOFTWARE_TYPE, .config = 9 }));
	assert_false(sample_is_expected(&(struct perf_event){ .type = 8, .is_pt = true }));
}

static void fields_print_in_the_order_of_perf(void **state)
{
	struct bench *bench =
		bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_PERIOD | PERF_SAMPLE_ADDR,
			  WHERE | FIELD_COMM | FIELD_PID | FIELD_PERIOD | FIELD_IP | FIELD_SYM |
				  FIELD_SYMOFF | FIELD_DSO | FIELD_ADDR | FIELD_FLAGS | FIELD_NR |
				  FIELD_INSNLEN);

	put(bench, 321); /* the period */
	prints(bench, "              :7     6/7     [002] host     1.500000:        321   cycles: "
		      "                                    7000"
		      "           401000 [unknown] ([unknown]) ilen: 0\n");
}

static void only_addresses_of_faults_and_branches_are_places(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t config, period;
		bool is_place;
	} cases[] = {
		{ SOFTWARE_TYPE, 0, 1, false }, /* cpu-clock */
		{ SOFTWARE_TYPE, 2, 1, true },  /* page-faults */
		{ SOFTWARE_TYPE, 5, 1, true },  { SOFTWARE_TYPE, 6, 1, true },
		{ HARDWARE_TYPE, 4, 1, true }, /* branches */
		{ HARDWARE_TYPE, 4, 2, false }, { HARDWARE_TYPE, 2, 1, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench =
			bench_new(cases[i].type, COMMON | PERF_SAMPLE_ADDR, FIELD_ADDR | FIELD_SYM);

		bench->event.config = cases[i].config;
		bench->event.sample_period = cases[i].period;
		prints(bench,
		       cases[i].is_place ? "            7000 [unknown]\n" : "            7000\n");
	}
}

static void a_period_that_is_not_told_is_that_of_the_event(void **state)
{
	prints(bench_new(HARDWARE_TYPE, COMMON, FIELD_PERIOD | FIELD_EVENT),
	       "      4000   cycles: \n");
}

static void an_event_may_have_no_name(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_EVENT);

	bench->event.name = "";
	prints(bench, "[unknown]: \n");
}

static void calls_are_on_lines_of_their_own(void **state)
{
	static const uint64_t calls[] = { -(uint64_t)128, 0xffffffff81000010, -(uint64_t)512, IP };
	struct bench *bench =
		bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_CALLCHAIN, FIELD_COMM | FIELD_IP);

	put(bench, 4);
	for (int i = 0; i < 4; i++)
		put(bench, calls[i]);
	prints(bench, ":7 \n\tffffffff81000010\n\t          401000\n\n");
}

static void a_chain_with_a_context_that_there_is_not_is_none(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_CALLCHAIN, FIELD_IP);

	put(bench, 2);
	put(bench, IP);
	put(bench, -(uint64_t)5);
	prints(bench, "\n\n");
}

static void a_deep_chain_is_cut_off(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_CALLCHAIN, FIELD_IP);
	char expected[4096] = "\n";

	put(bench, 200);
	for (uint64_t i = 0; i < 200; i++)
		put(bench, 0x1000 + i);
	for (unsigned i = 0; i < 127; i++)
		(void)sprintf(expected + strlen(expected), "\t%16x\n", 0x1000 + i);
	prints(bench, strcat(expected, "\n"));
}

static void branches_print_behind(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_BRANCH_STACK,
					FIELD_IP | FIELD_BRSTACK);

	put(bench, 1);
	put(bench, 0x11);
	put(bench, 0x22);
	put(bench, BRANCH_ENTRY_PREDICTED);
	prints(bench, "           401000 0x11/0x22/P/-/-/0/ \n");
}

static const uint64_t two_calls[] = { 0x11, 0x22 }, one_branch[] = { 0x33, 0x44, 0 };

static void tell_origin(struct bench *bench)
{
	bench->origin.calls = (struct bytes){ (const uint8_t *)two_calls, sizeof(two_calls) };
	bench->origin.branches = (struct bytes){ (const uint8_t *)one_branch, sizeof(one_branch) };
	bench->config.itrace.samples = (struct origin_limits){ 16, 16 };
}

static void what_the_trace_tells_stands_in(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_IP | FIELD_BRSTACK);

	tell_origin(bench);
	prints(bench, "\n\t              11\n\t              22\n 0x33/0x44/-/-/-/0/ \n");
	bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_IP | FIELD_BRSTACK);
	bench->config.itrace.samples = (struct origin_limits){ 16, 16 };
	prints(bench, "\n\t          401000\n\n");
	bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_TID);
	tell_origin(bench);
	prints(bench, "    7 \n");
}

static void what_was_recorded_goes_before_it(void **state)
{
	struct bench *bench =
		bench_new(HARDWARE_TYPE, COMMON | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
			  FIELD_IP | FIELD_BRSTACK);

	put(bench, 1);
	put(bench, IP);
	put(bench, 0);
	tell_origin(bench);
	prints(bench, "\n\t          401000\n\n");
}

/* Host and guest have other names for what is at the same address. */
static void branches_have_the_files_of_both_sides(void **state)
{
	static const uint64_t kernel = 0xffffffff81000000;
	const uint64_t entry[] = { kernel, kernel, ORIGIN_TO_GUEST };
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_BRSTACK | FIELD_DSO);

	assert_true(bench_guest_new(&bench->machines));
	bench->machines.host->kernel_name = "[host]";
	bench->machines.guests[0]->kernel_name = "[guest]";
	assert_true(bench_add_function(bench->machines.host, kernel));
	assert_true(bench_add_function(bench->machines.guests[0], kernel));
	bench->origin.branches = (struct bytes){ (const uint8_t *)entry, sizeof(entry) };
	prints(bench, " 0xffffffff81000000([host])/0xffffffff81000000([guest])/-/-/-/0/ \n");
}

static void the_instruction_of_a_sample_is_read_from_code(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_INSN | FIELD_INSNLEN);

	assert_true(bench_add_code(bench->machines.host, IP, "\x90", 1));
	prints(bench, " ilen: 1 insn: 90\n");
}

static void what_is_not_selected_is_no_line(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_TID);

	bench->config.tids = (struct number_ranges){ .items = { { 8, 9 } }, .count = 1 };
	prints(bench, "");
	bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_TID);
	bench->config.times = (struct time_ranges){ .items = { { 5, 6 } }, .count = 1 };
	prints(bench, "");
	bench = bench_new(HARDWARE_TYPE, COMMON & ~PERF_SAMPLE_TIME, FIELD_TID);
	bench->config.times = (struct time_ranges){ .items = { { 5, 6 } }, .count = 1 };
	prints(bench, "    7 \n");
	bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_TID);
	bench->config.guest_only = true;
	prints(bench, "");
	prints(bench_new(HARDWARE_TYPE, COMMON, 0), "");
}

static void a_guest_is_told_by_the_record(void **state)
{
	struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_MACHINE_PID | FIELD_NR);

	bench->record.misc = 4; /* PERF_RECORD_MISC_GUEST_KERNEL */
	bench->config.guest_only = true;
	prints(bench, "VM:    6 guest \n");
}

static void without_formats_a_tracepoint_is_bytes(void **state)
{
	struct bench *bench =
		bench_new(TRACEPOINT_TYPE, COMMON | PERF_SAMPLE_RAW, FIELD_EVENT | FIELD_TRACE);

	put(bench, 4 | UINT64_C(0x04030201) << 32);
	prints(bench, "  cycles: raw: 01 02 03 04\n");
}

static void a_sample_that_is_cut_off_is_no_line(void **state)
{
	for (size_t cut = 1; cut <= 5 * 8; cut += 3) {
		struct bench *bench = bench_new(HARDWARE_TYPE, COMMON, FIELD_TID);

		bench->used -= cut < bench->used - 8 ? cut : bench->used - 8;
		prints(bench, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_those_of_the_kernel),
		cmocka_unit_test(the_trace_and_dummies_have_no_samples),
		cmocka_unit_test(fields_print_in_the_order_of_perf),
		cmocka_unit_test(only_addresses_of_faults_and_branches_are_places),
		cmocka_unit_test(a_period_that_is_not_told_is_that_of_the_event),
		cmocka_unit_test(an_event_may_have_no_name),
		cmocka_unit_test(calls_are_on_lines_of_their_own),
		cmocka_unit_test(a_chain_with_a_context_that_there_is_not_is_none),
		cmocka_unit_test(a_deep_chain_is_cut_off),
		cmocka_unit_test(branches_print_behind),
		cmocka_unit_test(what_the_trace_tells_stands_in),
		cmocka_unit_test(what_was_recorded_goes_before_it),
		cmocka_unit_test(branches_have_the_files_of_both_sides),
		cmocka_unit_test(the_instruction_of_a_sample_is_read_from_code),
		cmocka_unit_test(what_is_not_selected_is_no_line),
		cmocka_unit_test(a_guest_is_told_by_the_record),
		cmocka_unit_test(without_formats_a_tracepoint_is_bytes),
		cmocka_unit_test(a_sample_that_is_cut_off_is_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
