/* print_origin: the calls and branches that led to a line, of a printer that follows none itself.
 */
#include "decode/print/print_origin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "decode/perf/sample_queues.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"
#include "tests/flow_bench.h"

/* The base of the kernel's addresses; tests add the last digits. */
#define KERNEL UINT64_C(0xffffffff81000000)

enum { PID = 6, TID = 7, CPU = 2 };

struct bench {
	struct pt_config pt;
	struct perf_data data;
	struct perf_event event;
	struct perf_record records[4];
	uint8_t sample[16]; /* all of them: an address */
	struct print_config config;
	struct machines machines;
	struct aux_queue queue;
	struct sample_queues samples;
	struct code code;
	struct flow_code where;
	struct printer printer;
};

static struct bench *bench_new(uint32_t fields, struct itrace itrace)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));

	bench->machines.host = machine_new(0, false);
	bench->machines.one_for_all = true;
	bench->event = (struct perf_event){ .sample_type = PERF_SAMPLE_IP };
	bench->data.events.items = &bench->event;
	bench->data.events.count = 1;
	bench->data.records.items = bench->records;
	bench->pt.conv.valid = true;
	bench->config = (struct print_config){ .fields = fields,
					       .itrace = itrace,
					       .modifier = "",
					       .pt = &bench->pt,
					       .machines = &bench->machines,
					       .data = &bench->data };
	bench->queue = (struct aux_queue){ .cpu = CPU, .pid = PID, .tid = TID };
	code_init(&bench->code, &bench->machines);
	bench->where = (struct flow_code){ .code = &bench->code, .pid = PID };
	printer_init(&bench->printer, &bench->config, &bench->queue, &bench->where);
	bench->printer.context = (struct pt_context){ .bits = 64, .vmcs = UINT64_MAX };
	prefix_refresh(&bench->printer);
	return bench;
}

static void bench_free(struct bench *bench)
{
	printer_free(&bench->printer);
	sample_queues_free(&bench->samples);
	code_free(&bench->code);
	machines_free(&bench->machines);
	test_free(bench);
}

static void called(struct bench *bench, uint64_t return_ip)
{
	struct call_stack *stack =
		call_stack_of(&bench->printer.calls, TID, bench->printer.context.nr);

	assert_non_null(stack);
	stack->frames[stack->depth++].return_ip = return_ip;
}

static void branched(struct bench *bench, uint64_t from, uint64_t to, uint32_t flags)
{
	const struct branch_entry entry = { .from = from, .to = to };

	print_origin_branch(&bench->printer, &entry, flags);
}

static void assert_out(struct bench *bench, const char *expected)
{
	text_putc(&bench->printer.out, 0);
	assert_string_equal(bench->printer.out.data, expected);
	bench->printer.out.size = 0;
}

/* The origin that is printed for an event at an address. */
static void prints(struct bench *bench, uint64_t ip, const char *expected)
{
	print_add_origin(&bench->printer, NULL, ip);
	assert_out(bench, expected);
}

static void without_letters_it_is_an_address(void **state)
{
	struct bench *bench = bench_new(FIELD_IP, (struct itrace){ 0 });

	called(bench, 0x1000);
	branched(bench, 1, 2, 0);
	prints(bench, 0x2000, "             2000");
	bench_free(bench);
}

static void calls_print_from_the_last_to_the_first(void **state)
{
	struct bench *bench = bench_new(FIELD_IP, (struct itrace){ .chain = 3 });

	called(bench, 0x1000);
	called(bench, 0x2000);
	called(bench, 0x3000);
	prints(bench, 0x4000, "\n\t            4000\n\t            3000\n\t            2000\n");
	bench_free(bench);
}

static void a_change_between_kernel_and_user_code_is_an_entry(void **state)
{
	struct bench *bench = bench_new(FIELD_IP, (struct itrace){ .chain = 3 });

	called(bench, 0x1000);
	called(bench, 0x2000);
	prints(bench, KERNEL, "\n\tffffffff81000000\n\t            2000\n");
	bench_free(bench);
}

static void host_and_guest_have_calls_of_their_own(void **state)
{
	struct bench *bench = bench_new(FIELD_IP, (struct itrace){ .chain = 16 });

	called(bench, 0x1000);
	bench->printer.context.nr = true;
	called(bench, 0x2000);
	prints(bench, 0x3000, "\n\t            3000\n\t            2000\n");
	bench->printer.context.nr = false;
	prints(bench, 0x3000, "\n\t            3000\n\t            1000\n");
	bench_free(bench);
}

static void a_name_above_calls_is_not_aligned(void **state)
{
	struct bench *bench = bench_new(FIELD_COMM | FIELD_IP, (struct itrace){ .chain = 2 });

	print_add_event_prefix(&bench->printer);
	assert_out(bench, ":7 ");
	bench->config.itrace.chain = 0;
	print_add_event_prefix(&bench->printer);
	assert_out(bench, "              :7 ");
	bench_free(bench);
}

static void as_many_branches_print_as_asked_for(void **state)
{
	const struct itrace both = { .last_branches = 2, .samples.branches = 5 };
	struct bench *bench = bench_new(FIELD_BRSTACK, both);

	branched(bench, 1, 2, 0);
	branched(bench, 3, 4, SAMPLE_TX_ABORT);
	branched(bench, 5, 6, SAMPLE_IN_TX);
	prints(bench, 0x1000, " 0x5/0x6/-/X/-/0/  0x3/0x4/-/-/A/0/ ");
	bench->config.fields = FIELD_IP;
	prints(bench, 0x1000, "             1000");
	bench_free(bench);
}

static void branches_have_the_files_of_both_sides(void **state)
{
	const struct itrace last = { .last_branches = 1 };
	const struct branch_entry exit = { .from = KERNEL, .to = KERNEL, .from_guest = true };
	struct bench *bench = bench_new(FIELD_BRSTACK | FIELD_DSO, last);

	bench->machines.one_for_all = false;
	assert_true(bench_guest_new(&bench->machines));
	bench->machines.host->kernel_name = "[host]";
	bench->machines.guests[0]->kernel_name = "[guest]";
	assert_true(bench_add_function(bench->machines.host, KERNEL));
	assert_true(bench_add_function(bench->machines.guests[0], KERNEL));
	print_origin_branch(&bench->printer, &exit, 0);
	prints(bench, 0x1000, " 0xffffffff81000000([guest])/0xffffffff81000000([host])/-/-/-/0/ ");
	bench_free(bench);
}

static void a_gap_makes_an_end_of_both(void **state)
{
	struct bench *bench = bench_new(FIELD_IP | FIELD_BRSTACK,
					(struct itrace){ .chain = 9, .last_branches = 9 });

	called(bench, 0x1000);
	branched(bench, 1, 2, 0);
	print_origin_lost(&bench->printer);
	prints(bench, 0x2000, "\n\t            2000\n");
	bench_free(bench);
}

static void add_sample(struct bench *bench, uint64_t time_ns, int32_t cpu, uint64_t ip)
{
	memcpy(bench->sample + 8, &ip, 8);
	bench->records[bench->data.records.count++] =
		(struct perf_record){ .data = bench->sample,
				      .size = sizeof(bench->sample),
				      .type = PERF_SAMPLE,
				      .time = time_ns,
				      .pid = PID,
				      .tid = TID,
				      .cpu = cpu };
}

/* The printer of the queue knows of the samples so far. */
static void begin(struct bench *bench)
{
	assert_int_equal(sample_queues_build(&bench->data, NULL, &bench->queue, 1, &bench->samples),
			 0);
	bench->config.samples = &bench->samples;
	print_origin_init(&bench->printer);
}

static void what_led_to_samples_lies_among_the_lines(void **state)
{
	const struct itrace itrace = { .samples = { .calls = 4 } };
	struct bench *bench = bench_new(FIELD_IP, itrace);
	struct print_runs *runs = &bench->printer.runs;

	add_sample(bench, 10, CPU, KERNEL);
	add_sample(bench, 20, CPU + 1, KERNEL);
	add_sample(bench, 30, CPU, KERNEL);
	add_sample(bench, 40, CPU, KERNEL);
	begin(bench);
	assert_int_equal(bench->printer.sample_ns, 10);
	print_origin_of_samples(&bench->printer, 10); /* when nothing is known yet */
	assert_int_equal(runs->count, 0);
	assert_int_equal(bench->printer.sample_ns, 30);
	called(bench, 0x1000);
	bench->printer.run_ns = 25;
	text_puts(&bench->printer.out, "a line\n");
	print_origin_of_samples(&bench->printer, 39);
	assert_int_equal(runs->count, 2);
	assert_int_equal(runs->items[0].time_ns, 25);
	assert_int_equal(runs->items[0].record, 0);
	assert_int_equal(runs->items[1].time_ns, 30);
	assert_int_equal(runs->items[1].record, 3);
	assert_int_equal(runs->items[1].end - runs->items[0].end, 16);
	assert_int_equal(bench->printer.sample_ns, 40);
	print_origin_of_samples(&bench->printer, 50);
	assert_int_equal(bench->printer.sample_ns, UINT64_MAX);
	bench_free(bench);
}

/* A long gap in the trace may hold many samples, whose text must not pile up. */
static void it_does_not_grow_without_end(void **state)
{
	const struct itrace itrace = { .samples = { .calls = 4 } };
	struct bench *bench = bench_new(FIELD_IP, itrace);

	add_sample(bench, 10, CPU, KERNEL);
	begin(bench);
	called(bench, 0x1000);
	assert_true(text_reserve(&bench->printer.out, 5 << 20));
	bench->printer.out.size = 4 << 20;
	memset(bench->printer.out.data, 'x', bench->printer.out.size);
	print_origin_of_samples(&bench->printer, 50);
	assert_int_equal(bench->printer.out.size, 4 << 20);
	bench_free(bench);
}

static void without_samples_none_is_waited_for(void **state)
{
	struct bench *bench = bench_new(FIELD_IP, (struct itrace){ .samples = { .calls = 4 } });

	assert_int_equal(bench->printer.sample_ns, UINT64_MAX);
	begin(bench);
	assert_int_equal(bench->printer.sample_ns, UINT64_MAX);
	bench_free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_letters_it_is_an_address),
		cmocka_unit_test(calls_print_from_the_last_to_the_first),
		cmocka_unit_test(a_change_between_kernel_and_user_code_is_an_entry),
		cmocka_unit_test(host_and_guest_have_calls_of_their_own),
		cmocka_unit_test(a_name_above_calls_is_not_aligned),
		cmocka_unit_test(as_many_branches_print_as_asked_for),
		cmocka_unit_test(branches_have_the_files_of_both_sides),
		cmocka_unit_test(a_gap_makes_an_end_of_both),
		cmocka_unit_test(what_led_to_samples_lies_among_the_lines),
		cmocka_unit_test(it_does_not_grow_without_end),
		cmocka_unit_test(without_samples_none_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
