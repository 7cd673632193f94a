#include "decode/code/ftrace_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* A kernel whose functions may be traced, by what is in the ftrace of a real one:
 *	000 call each function; jmp *%rax
 *	040, 060, ...	nop; je; ret				functions, the last with an ENDBR
 *	100 nop; call 180; nop; ret				ftrace_caller
 *	120 pushf; call 180; popf; jmp 125			ftrace_regs_caller
 *	140 ret							return_to_handler
 *	180 ret							ftrace_stub
 *	1a0 jne; jne; ret					function_trace_call */
enum {
	FIRST = 0x40,
	FUNCTION = 0x20,
	FUNCTIONS = 4,
	ENDBR = 4,
	CALL_SIZE = 5,
	CALLER = 0x100,
	CALLER_CALL = CALLER + 1,
	REGS_CALLER = 0x120,
	BEHIND = 0x140,
	STUB = 0x180,
	TRACER = 0x1a0,
	SIZE = 0x1c0,
	NOWHERE = 0x100000,
	VISITS = 40,
	SPACE = 80, /* bytes of trace between visits, which are then different places */
};

static const uint64_t base = 0xffffffff81000000;

struct fixture {
	uint8_t code[SIZE];
	struct machines machines;
};

static size_t function_at(unsigned index)
{
	return FIRST + index * FUNCTION;
}

/* Where a function tells that it begins. */
static size_t entry_at(unsigned index)
{
	return function_at(index) + (index == FUNCTIONS - 1 ? ENDBR : 0);
}

static void put_call(struct fixture *f, size_t at, size_t to)
{
	uint32_t distance = (uint32_t)(to - (at + CALL_SIZE));

	f->code[at] = 0xe8;
	memcpy(f->code + at + 1, &distance, 4);
}

static void make_code(struct fixture *f)
{
	memset(f->code, 0xcc, SIZE);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		put_call(f, i * CALL_SIZE, function_at(i));
		memcpy(f->code + function_at(i), "\xf3\x0f\x1e\xfa", ENDBR);
		memcpy(f->code + entry_at(i), "\x0f\x1f\x44\0\0\x74\0\xc3", 8);
	}
	memcpy(f->code + FUNCTIONS * CALL_SIZE, "\xff\xe0", 2);
	memcpy(f->code + CALLER, "\x90\xe8\0\0\0\0\x90\xc3", 8);
	put_call(f, CALLER_CALL, STUB);
	memcpy(f->code + REGS_CALLER, "\x9c\xe8\0\0\0\0\x9d\xeb\xfc", 9);
	put_call(f, REGS_CALLER + 1, STUB);
	f->code[BEHIND] = f->code[STUB] = 0xc3;
	memcpy(f->code + TRACER, "\x75\0\x75\0\xc3", 5);
}

static void name(struct fixture *f, size_t at, const char *name)
{
	struct symbol symbol = { .start = base + at, .name = name, .is_global = true };

	assert_int_equal(symbols_add(&f->machines.host->symbols, &symbol), 0);
}

static void add_symbols(struct fixture *f)
{
	name(f, 0, "main");
	for (unsigned i = 0; i < FUNCTIONS; i++)
		name(f, function_at(i), "function");
	name(f, CALLER, "ftrace_caller");
	name(f, REGS_CALLER, "ftrace_regs_caller");
	name(f, BEHIND, "return_to_handler");
	name(f, STUB, "ftrace_stub");
	name(f, TRACER, "function_trace_call");
	assert_int_equal(symbols_finish(&f->machines.host->symbols, true), 0);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	make_code(&fixture);
	assert_true(bench_machines_new(&fixture.machines));
	add_symbols(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	machines_free(&f->machines);
	return 0;
}

/* The code is final. */
static const struct ftrace_table *read_table(struct fixture *f)
{
	const struct ftrace_table *table;

	assert_true(bench_add_code(f->machines.host, base, f->code, SIZE));
	table = machine_ftrace(f->machines.host);
	assert_non_null(table);
	return table;
}

static struct insn insn_at(const struct fixture *f, size_t at)
{
	struct insn insn;

	assert_int_equal(insn_read(f->code + at, SIZE - at, base + at, 64, &insn), 0);
	return insn;
}

static void each_function_begins_with_a_site(void **state)
{
	struct fixture *f = *state;
	const struct ftrace_table *table = read_table(f);

	assert_int_equal(table->count, FUNCTIONS);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const struct insn insn = insn_at(f, entry_at(i));

		assert_int_equal(ftrace_table_find(table, base + entry_at(i))->copied, 0);
		assert_true(ftrace_table_has(table, &insn));
	}
	assert_null(ftrace_table_find(table, base + function_at(FUNCTIONS - 1)));
	assert_null(ftrace_table_find(table, base + TRACER));
}

static void a_jump_label_is_none(void **state)
{
	struct fixture *f = *state;
	const struct label_entry label = { .site = base + entry_at(1) };
	const struct ftrace_table *table;

	assert_true(vec_push(&f->machines.host->labels, label));
	table = read_table(f);
	assert_int_equal(table->count, FUNCTIONS - 1);
	assert_null(ftrace_table_find(table, label.site));
}

static void a_call_of_a_trampoline_is_one(void **state)
{
	struct fixture *f = *state;
	const struct ftrace_table *table;
	struct insn insn;

	put_call(f, entry_at(0), NOWHERE);
	put_call(f, entry_at(1), CALLER);
	put_call(f, entry_at(2), TRACER);
	put_call(f, entry_at(3), TRACER + 5); /* where there is code, but no function begins */
	table = read_table(f);
	assert_int_equal(table->count, FUNCTIONS - 1);
	assert_int_equal(ftrace_table_find(table, base + entry_at(0))->copied, base + NOWHERE);
	assert_int_equal(ftrace_table_find(table, base + entry_at(1))->copied, base + CALLER);
	assert_null(ftrace_table_find(table, base + entry_at(2)));
	assert_int_equal(ftrace_table_find(table, base + entry_at(3))->copied, base + TRACER + 5);
	insn = insn_at(f, entry_at(0));
	assert_true(ftrace_table_has(table, &insn));
	insn.target++; /* it was patched since */
	assert_false(ftrace_table_has(table, &insn));
}

static void trampolines_are_made_of_the_callers(void **state)
{
	struct fixture *f = *state;
	const struct ftrace_table *table = read_table(f);

	assert_int_equal(table->tracer_count, 1);
	assert_int_equal(table->tracers[0].address, base + TRACER);
	assert_int_equal(table->tracers[0].caller, base + CALLER);
	assert_int_equal(table->tracers[0].call, base + CALLER_CALL);
	assert_true(ftrace_table_has_caller(table, base + CALLER));
	assert_true(ftrace_table_has_caller(table, base + BEHIND - 1));
	assert_false(ftrace_table_has_caller(table, base + BEHIND));
}

/* The name is not believed. */
static void what_is_no_jump_stays(void **state)
{
	struct fixture *f = *state;

	name(f, REGS_CALLER, "ftrace_regs_caller_jmp");
	name(f, STUB, "kprobe_ftrace_handler");
	assert_int_equal(symbols_finish(&f->machines.host->symbols, true), 0);
	assert_int_equal(read_table(f)->tracer_count, 2);
	assert_int_equal(read_table(f)->tracers[1].jump, 0);
}

static void a_kernel_without_callers_has_no_tracers(void **state)
{
	struct fixture *f = *state;

	f->code[CALLER_CALL] = 0xc3;
	assert_int_equal(read_table(f)->tracer_count, 0);
	assert_false(ftrace_table_has_caller(read_table(f), base + CALLER));
}

/* All that lies between them would stand for trampolines. */
static void callers_that_are_far_apart_are_others(void **state)
{
	struct fixture *f = *state;
	uint8_t far[16];

	memcpy(far, f->code + REGS_CALLER, sizeof(far));
	assert_true(bench_add_code(f->machines.host, base + NOWHERE, far, sizeof(far)));
	for (size_t i = 0; i < f->machines.host->symbols.count; i++)
		if (f->machines.host->symbols.items[i].start == base + REGS_CALLER)
			f->machines.host->symbols.items[i].name = "other";
	name(f, NOWHERE, "ftrace_regs_caller");
	assert_int_equal(symbols_finish(&f->machines.host->symbols, true), 0);
	assert_int_equal(read_table(f)->tracer_count, 0);
}

static void check_insn(const struct ftrace_change *change, size_t at, size_t to)
{
	struct patched_insn insn;

	assert_true(ftrace_change_has(change, base + at));
	assert_true(ftrace_change_insn(change, base + at, &insn));
	assert_int_equal(insn.site, base + at);
	assert_int_equal(insn.to, base + to);
}

static void a_tracer_is_of_all_functions_or_of_one(void **state)
{
	struct fixture *f = *state;
	const struct ftrace_table *table = read_table(f);
	struct ftrace_change change = { .table = table, .tracer = table->tracers[0] };
	struct patched_insn insn;

	check_insn(&change, entry_at(0), CALLER);
	check_insn(&change, entry_at(3), CALLER);
	check_insn(&change, CALLER_CALL, TRACER);
	assert_false(ftrace_change_has(&change, base + STUB));
	change.site = base + entry_at(1);
	check_insn(&change, entry_at(1), CALLER);
	check_insn(&change, CALLER_CALL, TRACER);
	assert_false(ftrace_change_has(&change, base + entry_at(0)));
	change.is_as_copied = true;
	assert_false(ftrace_change_insn(&change, base + entry_at(1), &insn));
}

/* The trampoline of kprobes has a NOP in place of that jump; the one of several tracers is what is
 * in the copy. */
static void a_trampoline_has_no_direct_calls(void **state)
{
	enum { JUMP = REGS_CALLER + 1 + CALL_SIZE, KPROBE = TRACER + 2 };
	struct fixture *f = *state;
	const struct ftrace_table *table;
	struct ftrace_change change = { .site = base + entry_at(1) };
	struct patched_insn insn;

	memcpy(f->code + JUMP, "\x75\x02\x9d\xc3", 4);
	name(f, JUMP, "ftrace_regs_caller_jmp");
	name(f, STUB, "arch_ftrace_ops_list_func");
	name(f, KPROBE, "kprobe_ftrace_handler");
	assert_int_equal(symbols_finish(&f->machines.host->symbols, true), 0);
	table = read_table(f);
	assert_int_equal(table->tracer_count, 4);
	for (unsigned i = 0; i < 4; i++) {
		bool has_own = table->tracers[i].address == base + KPROBE;

		change.table = table;
		change.tracer = table->tracers[i];
		assert_int_equal(ftrace_change_has(&change, base + JUMP), has_own);
	}
	check_insn(&change, JUMP, JUMP + 2);
	assert_true(ftrace_change_insn(&change, base + JUMP, &insn));
	assert_int_equal(insn.size, 2);
}

/* Functions of the graph, of which a part is as in a real kernel:
 *	000 call 020; call 040; ret				function_graph_enter_regs
 *	020 ret							ftrace_graph_entry_stub
 *	040 ret							trace_graph_entry
 *	060 call 020						main2, which has no static calls
 *	080 call 0a0; ret					ftrace_return_to_handler
 *	0a0 ret							ftrace_graph_ret_stub
 *	0c0 ret							ftrace_graph_func */
static void add_graph(struct fixture *f)
{
	static const struct {
		size_t at;
		const char *name;
	} names[] = {
		{ 0, "function_graph_enter_regs" },   { 0x20, "ftrace_graph_entry_stub" },
		{ 0x40, "trace_graph_entry" },        { 0x60, "main2" },
		{ 0x80, "ftrace_return_to_handler" }, { 0xa0, "ftrace_graph_ret_stub" },
		{ 0xc0, "ftrace_graph_func" },
	};
	struct fixture graph;

	memset(graph.code, 0xc3, SIZE);
	put_call(&graph, 0, 0x20);
	put_call(&graph, CALL_SIZE, 0x40);
	put_call(&graph, 0x60, 0x20);
	put_call(&graph, 0x80, 0xa0);
	assert_true(bench_add_code(f->machines.host, base + NOWHERE, graph.code, SIZE));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		name(f, NOWHERE + names[i].at, names[i].name);
}

/* One has no other form, as there is no trace_graph_return. */
static void tracers_of_the_graph_change_static_calls(void **state)
{
	struct fixture *f = *state;
	struct ftrace_change change = { .site = base + entry_at(0) };
	const struct ftrace_table *table;

	add_graph(f);
	assert_int_equal(symbols_finish(&f->machines.host->symbols, true), 0);
	table = read_table(f);
	assert_int_equal(table->static_call_count, 1);
	assert_ptr_equal(ftrace_table_static_call(table, base + NOWHERE), table->static_calls);
	assert_null(ftrace_table_static_call(table, base + NOWHERE + CALL_SIZE));
	assert_int_equal(table->tracer_count, 2);
	change.table = table;
	change.tracer = table->tracers[1];
	check_insn(&change, NOWHERE, NOWHERE + 0x40);
	check_insn(&change, CALLER_CALL, NOWHERE + 0xc0);
	change.tracer = table->tracers[0];
	assert_false(ftrace_change_has(&change, base + NOWHERE));
}

static void a_later_copy_tells_of_all_that_are_alike(void **state)
{
	struct fixture *f = *state;
	struct insn call, nop, other;
	const struct ftrace_table *table;
	struct ftrace_change change;

	put_call(f, entry_at(0), NOWHERE);
	table = read_table(f);
	call = insn_at(f, entry_at(0));
	nop = insn_at(f, entry_at(1));
	other = insn_at(f, TRACER);
	assert_true(ftrace_change_make(&change, table, &nop, &call));
	check_insn(&change, entry_at(1), NOWHERE);
	check_insn(&change, entry_at(2), NOWHERE);
	assert_false(ftrace_change_has(&change, base + entry_at(0)));
	assert_true(ftrace_change_make(&change, table, &call, &nop));
	check_insn(&change, entry_at(0), entry_at(0) + CALL_SIZE);
	assert_false(ftrace_change_has(&change, base + entry_at(1)));
	assert_false(ftrace_change_make(&change, table, &nop, &other));
	assert_false(ftrace_change_make(&change, table, &other, &nop));
}

/* Instructions that ran, but for those of trampolines. */
struct truth {
	uint64_t items[VISITS * 8 * FUNCTIONS];
	size_t count;
};

static void put_ran(struct truth *truth, size_t at)
{
	truth->items[truth->count++] = base + at;
}

/* Main runs once, all functions traced. */
static void put_visit(struct pt_bytes *trace, struct truth *truth, unsigned number)
{
	static const uint8_t space[SPACE];

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		unsigned way = (number >> i) & 1;

		put_ran(truth, i * CALL_SIZE);
		if (entry_at(i) != function_at(i))
			put_ran(truth, function_at(i));
		put_ran(truth, entry_at(i));
		for (unsigned k = 0; k < 5; k += 2)
			put_ran(truth, TRACER + k);
		put_ran(truth, entry_at(i) + CALL_SIZE);
		put_ran(truth, entry_at(i) + CALL_SIZE + 2);
		/* the tracer's branches, its return, the trampoline's; and the function's */
		pt_put(trace, &(struct pt_packet){ .kind = PT_TNT,
						   .payload = way << 5 | 0xc | way << 1 | 1,
						   .count = 6 });
	}
	pt_put_bytes(trace, space, sizeof(space));
	if (number == VISITS - 1)
		return;
	put_ran(truth, FUNCTIONS * CALL_SIZE);
	pt_put_ip(trace, PT_TIP, base, PT_IP_AUTO);
}

static void check_flow(struct fixture *f, const struct bench_list *list, const struct truth *truth)
{
	size_t k = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct bench_item *item = &list->items[i];

		if (item->is_gap) {
			assert_int_equal(item->gap, GAP_THUNK);
			assert_in_range(item->ip, base + CALLER, base + BEHIND - 1);
			continue;
		}
		assert_true(k < truth->count);
		assert_int_equal(item->ip, truth->items[k++]);
	}
	assert_int_equal(k, truth->count);
	assert_int_equal(list->gaps, 2 * FUNCTIONS * VISITS);
}

/* What trampolines have is not told: it is not where what they are made of is. */
static void check_traced(struct fixture *f)
{
	const struct pt_config config = { 0 };
	struct bench_queue queue = { 0 };
	struct pt_bytes trace = { 0 };
	struct truth truth = { 0 };
	struct bench_list list;

	(void)read_table(f);
	pt_put_psb(&trace);
	pt_put_value(&trace, PT_PSBEND, 0);
	pt_put_ip(&trace, PT_TIP_PGE, base, PT_IP_AUTO);
	for (unsigned i = 0; i < VISITS; i++)
		put_visit(&trace, &truth, i);
	bench_queue_add(&queue, trace.data, trace.size, false);
	bench_decode(&queue.queue, &config, &f->machines, 0, &list);
	check_flow(f, &list, &truth);
	bench_list_free(&list);
	bench_queue_free(&queue);
	pt_bytes_free(&trace);
}

static void functions_that_were_not_traced_are(void **state)
{
	check_traced(*state);
}

/* A copy while they were, but without the trampoline. */
static void functions_that_call_what_is_in_no_copy_are_traced(void **state)
{
	for (unsigned i = 0; i < FUNCTIONS; i++)
		put_call(*state, entry_at(i), NOWHERE);
	check_traced(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_function_begins_with_a_site),
		TEST(a_jump_label_is_none),
		TEST(a_call_of_a_trampoline_is_one),
		TEST(trampolines_are_made_of_the_callers),
		TEST(what_is_no_jump_stays),
		TEST(a_kernel_without_callers_has_no_tracers),
		TEST(callers_that_are_far_apart_are_others),
		TEST(a_tracer_is_of_all_functions_or_of_one),
		TEST(a_trampoline_has_no_direct_calls),
		TEST(tracers_of_the_graph_change_static_calls),
		TEST(a_later_copy_tells_of_all_that_are_alike),
		TEST(functions_that_were_not_traced_are),
		TEST(functions_that_call_what_is_in_no_copy_are_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
