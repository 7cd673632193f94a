#include "tests/print_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct print_bench *print_bench_new(uint32_t fields, const char *letters)
{
	struct print_bench *bench = test_calloc(1, sizeof(*bench));
	struct ptvm_error error = { 0 };

	assert_int_equal(itrace_add(letters, &bench->config.itrace, &error), 0);
	bench->machines.host = machine_new(0, false);
	bench->machines.one_for_all = true;
	bench->pt.have_event_trace = true;
	bench->pt.tsc = true;
	bench->config.fields = fields;
	bench->config.modifier = ":k";
	bench->config.name_width = 12;
	bench->config.pt = &bench->pt;
	bench->config.style = (struct block_style){ .fields = fields, .lead = "" };
	bench->config.machines = &bench->machines;
	bench->queue = (struct aux_queue){ .cpu = 1, .pid = 7, .tid = 8 };
	code_init(&bench->code, &bench->machines);
	bench->where = (struct flow_code){ .code = &bench->code, .pid = 7 };
	printer_init(&bench->printer, &bench->config, &bench->queue, &bench->where);
	return bench;
}

void print_bench_expect(struct print_bench *bench, const char *expected)
{
	text_putc(&bench->printer.out, 0);
	assert_string_equal(bench->printer.out.data, expected);
	assert_int_equal(bench->printer.out.size, strlen(expected) + 1);
	bench->printer.out.size = 0;
}

void print_bench_free(struct print_bench *bench)
{
	printer_free(&bench->printer);
	text_free(&bench->printer.out);
	code_free(&bench->code);
	machines_free(&bench->machines);
	test_free(bench);
}
