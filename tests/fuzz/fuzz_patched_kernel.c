/* Pieces of any bytes as the code of a kernel and its table of jump labels, and the rest as a trace
 * of it: what was patched is inferred, the flow comes to an end, and finds the same whatever code
 * its thread has read before. The first byte chooses how the trace was made. */
#include <stdlib.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t text = 0xffffffff81000000, labels = 0xffffffff81008000;

enum {
	TEXT_SIZE = 0x1000,
	FUNCTION_SIZE = 0x80,
	APART = 0x10,
	ITERATORS = 0x800,
	PROBES = 0x900,
	FTRACE = 0xa00,
	INT3_HANDLER = 0xf00,
};

static void add_symbol(struct symbols *symbols, uint64_t address, const char *name)
{
	const struct symbol symbol = { .start = address, .name = name, .is_global = true };

	if (symbols_add(symbols, &symbol))
		abort();
}

/* Functions at equal distances, of three tracepoints what calls their probes, of ftrace what
 * trampolines are made of, three tracers, and a static call of the graph's; and where INT3s go. */
static void add_symbols(struct symbols *symbols, uint64_t labels_size)
{
	static const char *const iterators[] = { "__traceiter_x", "__traceiter_y",
						 "__traceiter_z" };
	static const char *const probes[] = { "perf_trace_x", "perf_trace_y", "perf_trace_z" };
	static const char *const ftrace[] = { "ftrace_caller",           "ftrace_regs_caller",
					      "function_trace_call",     "ftrace_graph_func",
					      "kprobe_ftrace_handler",   "function_graph_enter",
					      "ftrace_graph_entry_stub", "trace_graph_entry" };

	for (uint64_t at = 0; at < ITERATORS; at += FUNCTION_SIZE)
		add_symbol(symbols, text + at, "function");
	for (uint64_t i = 0; i < 3; i++) {
		add_symbol(symbols, text + ITERATORS + i * APART, iterators[i]);
		add_symbol(symbols, text + PROBES + i * APART, probes[i]);
	}
	for (uint64_t i = 0; i < sizeof(ftrace) / sizeof(*ftrace); i++)
		add_symbol(symbols, text + FTRACE + i * FUNCTION_SIZE, ftrace[i]);
	add_symbol(symbols, text + INT3_HANDLER, "asm_exc_int3");
	add_symbol(symbols, text, "_stext");
	add_symbol(symbols, text + TEXT_SIZE, "_etext");
	add_symbol(symbols, labels, "__start___jump_table");
	add_symbol(symbols, labels + labels_size, "__stop___jump_table");
	if (symbols_finish(symbols, true))
		abort();
}

static void load_kernel(struct machine *machine, struct bytes code, struct bytes table)
{
	if (!bench_add_code(machine, text, code.data, code.size) ||
	    !bench_add_code(machine, labels, table.data, table.size))
		abort();
	add_symbols(&machine->symbols, table.size);
}

static bool is_same(const struct bench_item *a, const struct bench_item *b)
{
	return a->ip == b->ip && a->tsc == b->tsc && a->nr == b->nr && a->is_gap == b->is_gap &&
	       a->gap == b->gap;
}

static void decode_both_ways(const struct aux_queue *queue, const struct pt_config *config,
			     const struct machines *machines)
{
	struct bench_list list, fresh;

	bench_decode_informed(queue, config, machines, false, &list);
	bench_decode_informed(queue, config, machines, true, &fresh);
	if (list.count != fresh.count)
		abort();
	for (size_t i = 0; i < list.count; i++)
		if (!is_same(&list.items[i], &fresh.items[i]))
			abort();
	bench_list_free(&list);
	bench_list_free(&fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pt_config config = bench_skylake_x;
	struct bench_queue queue = { 0 };
	struct machines machines;
	struct bytes rest, code;

	if (!size)
		return 0;
	rest = (struct bytes){ data + 1, size - 1 };
	code = fuzz_piece(&rest);
	code.size = code.size < TEXT_SIZE ? code.size : TEXT_SIZE;
	config.noretcomp = data[0] & 1;
	config.tsc = config.mtc = data[0] & 2;
	if (!bench_machines_new(&machines))
		abort();
	load_kernel(machines.host, code, fuzz_piece(&rest));
	bench_queue_add(&queue, rest.data, rest.size, false);
	decode_both_ways(&queue.queue, &config, &machines);
	bench_queue_free(&queue);
	machines_free(&machines);
	return 0;
}
