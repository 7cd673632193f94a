#include "decode/flow/patch_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* One function of a kernel with one label or two, and traces of how it ran in another form. */

enum {
	SIZE = 0x200,
	LABEL = 2,     /* a NOP of 5 bytes */
	SECOND = 7,    /* another one, or one of the 64-bit instructions' fillers */
	JUMPED = 0x40, /* where a label leads that is a jump, */
	SHARED = 0x44, /* or where others come by too */
	ROUND = 0x60,  /* or into a loop */
	LEAF = 0x100,
	ITERATOR = 0x120, /* of a tracepoint's probes */
	PROBE = 0x140,
	SECOND_ITERATOR = 0x130,
	SECOND_PROBE = 0x150,
	TRAMPOLINE = 0x160, /* what those of ftrace are made of */
	REGS_TRAMPOLINE = 0x170,
	STUB = 0x180,
	TRACER = 0x190,
};

static const uint64_t base = 0xffffffff81000000;

struct bench {
	uint8_t image[SIZE], later[SIZE];
	bool has_later;
	unsigned tracepoints;
	bool has_ftrace;
	struct pt_bytes trace;
};

static void put(struct bench *bench, size_t at, const char *bytes, size_t size)
{
	memcpy(bench->image + at, bytes, size);
}

/* 0: xor; label; 7: nop, or a second label; 12: test; jne 18; xor; 18: jmp SHARED;
 * JUMPED: call *rax; xor; SHARED: jne; jmp *rcx */
static void make(struct bench *bench, bool has_second)
{
	*bench = (struct bench){ 0 };
	memset(bench->image, 0xcc, SIZE);
	put(bench, 0, "\x31\xc0\x0f\x1f\x44\0\0", 7);
	put(bench, SECOND, has_second ? "\x0f\x1f\x44\0\0" : "\x0f\x1f\x40\0\x90", 5);
	put(bench, 12, "\x85\xc0\x75\x02\x31\xc0\xeb\x30", 8);
	put(bench, JUMPED, "\xff\xd0\x31\xdb\x75\0\xff\xe1", 8);
	put(bench, LEAF, "\x31\xc9\xc3", 3);
	memcpy(bench->later, bench->image, SIZE);
	pt_put_psb(&bench->trace);
	pt_put_value(&bench->trace, PT_PSBEND, 0);
	pt_put_ip(&bench->trace, PT_TIP_PGE, base, PT_IP_AUTO);
}

static void tip(struct bench *bench, size_t to)
{
	pt_put_ip(&bench->trace, PT_TIP, base + to, PT_IP_AUTO);
}

static void tnt(struct bench *bench, bool taken)
{
	pt_put(&bench->trace, &(struct pt_packet){ .kind = PT_TNT, .payload = taken, .count = 1 });
}

/* The label leads to JUMPED, so many times. */
static void jump(struct bench *bench, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		tip(bench, LEAF);
		tnt(bench, true);
		tnt(bench, false);
		tip(bench, 0);
	}
}

/* The label leads to SHARED. */
static void jump_ahead(struct bench *bench, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		tnt(bench, true);
		tip(bench, 0);
	}
}

/* The label is a call, and what follows it runs as it is. */
static void call(struct bench *bench, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		tnt(bench, true);
		tnt(bench, false);
		tnt(bench, false);
		tip(bench, 0);
	}
}

/* A TNT bit while the leaf runs, which has no conditional branch. */
static void disagree(struct bench *bench)
{
	tip(bench, LEAF);
	tnt(bench, false);
}

struct found {
	uint64_t work; /* that is left */
	struct flow_patches patches;
	uint32_t gaps;
	unsigned candidates;
};

static void add_symbols(struct symbols *symbols, const struct symbol *items, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct symbol symbol = { .start = base + items[i].start, .name = items[i].name };

		assert_int_equal(symbols_add(symbols, &symbol), 0);
	}
	assert_int_equal(symbols_finish(symbols, true), 0);
}

static void add_tracepoints(struct symbols *symbols, unsigned count)
{
	static const struct symbol items[] = {
		{ .start = ITERATOR, .name = "__traceiter_x" },
		{ .start = PROBE, .name = "perf_trace_x" },
		{ .start = SECOND_ITERATOR, .name = "__traceiter_y" },
		{ .start = SECOND_PROBE, .name = "perf_trace_y" },
	};

	add_symbols(symbols, items, 2 * count);
}

static void add_tracer(struct symbols *symbols)
{
	static const struct symbol items[] = {
		{ .start = TRAMPOLINE, .name = "ftrace_caller" },
		{ .start = REGS_TRAMPOLINE, .name = "ftrace_regs_caller" },
		{ .start = STUB, .name = "ftrace_stub" },
		{ .start = TRACER, .name = "function_trace_call" },
	};

	add_symbols(symbols, items, sizeof(items) / sizeof(*items));
}

static void load(struct bench *bench, struct machines *machines)
{
	assert_true(bench_machines_new(machines));
	assert_true(bench_add_code(machines->host, base, bench->image, SIZE));
	assert_true(bench_add_function(machines->host, base));
	assert_true(bench_add_function(machines->host, base + LEAF));
	if (bench->tracepoints)
		add_tracepoints(&machines->host->symbols, bench->tracepoints);
	if (bench->has_ftrace)
		add_tracer(&machines->host->symbols);
	if (bench->has_later)
		assert_int_equal(later_code_add(&machines->host->later, base, bench->image,
						(struct bytes){ bench->later, SIZE }),
				 0);
}

/* `work`: instructions that may be tried; UINT64_MAX: as many as usual. */
static struct found decode(struct bench *bench, struct patch_candidates *candidates, uint64_t work)
{
	static struct flow_batch batch;
	static struct pt_flow flow;
	const struct pt_config config = { .have_event_trace = false };
	struct bench_queue queue = { 0 };
	struct pt_segment segment;
	struct machines machines;
	struct pt_walk walk;
	struct code code;
	struct flow_code where = { .code = &code, .pid = 0, .candidates = candidates };
	struct found ret;

	pt_put_ip(&bench->trace, PT_TIP_PGD, 0, 0);
	load(bench, &machines);
	code_init(&code, &machines);
	bench_queue_add(&queue, bench->trace.data, bench->trace.size, false);
	pt_walk_init(&walk, &queue.queue, &config, NULL, 0);
	assert_int_equal(pt_walk_next(&walk, &segment), 0);
	pt_flow_init(&flow, &segment, &config, &where, false);
	if (work != UINT64_MAX)
		flow.patches.work = work;
	batch.room = FLOW_BATCH;
	while (!pt_flow_run(&flow, &batch))
		;
	ret = (struct found){ .gaps = flow.gaps, .candidates = candidates ? candidates->count : 0 };
	ret.work = flow.patches.work;
	ret.patches.count = flow.patches.count;
	memcpy(ret.patches.items, flow.patches.items, sizeof(ret.patches.items));
	code_free(&code);
	bench_queue_free(&queue);
	machines_free(&machines);
	pt_bytes_free(&bench->trace);
	return ret;
}

static void assert_patch(const struct found *found, size_t site, size_t to, const char *bytes)
{
	const struct flow_patch *patch = &found->patches.items[0];

	assert_int_equal(found->gaps, 0);
	assert_int_equal(found->patches.count, 1);
	assert_int_equal(patch->change.insn.site, base + site);
	assert_int_equal(patch->change.insn.to, base + to);
	assert_int_equal(patch->change.insn.size, 5);
	assert_memory_equal(patch->change.insn.bytes, bytes, 5);
}

static void assert_none(const struct found *found)
{
	assert_true(found->gaps > 0);
	assert_int_equal(found->patches.count, 0);
}

static void what_explains_all_is_taken(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_patch(&found, LABEL, JUMPED, "\xe9\x39\0\0\0");
}

/* The function is traced alone: an address filter ends tracing at the call in it, which a flow
 * along known blocks meets. Before, the label was a NOP. */
static void what_explains_where_tracing_ends_is_taken(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	for (unsigned i = 0; i < 4; i++) {
		tnt(&bench, false);
		tnt(&bench, false);
		tip(&bench, 0);
	}
	for (unsigned i = 0; i < FLOW_ENOUGH_BYTES / 4; i++) {
		pt_put_ip(&bench.trace, PT_TIP_PGD, base + 2 * SIZE, PT_IP_AUTO);
		pt_put_ip(&bench.trace, PT_TIP_PGE, base, PT_IP_AUTO);
	}
	found = decode(&bench, NULL, UINT64_MAX);
	assert_patch(&found, LABEL, JUMPED, "\xe9\x39\0\0\0");
}

/* Before it became a jump, the label was a NOP, so many times. */
static uint64_t work_left_after(unsigned nops)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	for (unsigned i = 0; i < nops; i++) {
		tnt(&bench, false);
		tnt(&bench, false);
		tip(&bench, 0);
	}
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_patch(&found, LABEL, JUMPED, "\xe9\x39\0\0\0");
	return found.work;
}

/* What a flow passed long before is not gone through again. A batch has room for all of it. */
static void what_is_found_does_not_depend_on_the_size_of_batches(void **state)
{
	uint64_t few = work_left_after(30), many = work_left_after(600);
	const uint64_t byte_work = 32, bytes = 570 * 5;

	assert_true(many > few);
	assert_in_range(many - few, bytes * byte_work - 1000, bytes * byte_work + 1000);
}

/* The target fits as the code leads nowhere else, but the flow never comes back to the label. */
static void a_target_that_is_not_clear_must_be_met_often(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump(&bench, 1);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

static void a_target_that_others_reach_is_not_taken(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump_ahead(&bench, 20);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

static void two_that_explain_as_much_are_both_refused(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	/* as at JUMPED: call *rax; xor; jmp SHARED */
	put(&bench, ROUND, "\xff\xd0\x31\xdb\xeb\xde", 6);
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

/* Both lead to the same place. If it is the second that does, the first ran all the same. */
static void of_two_in_a_row_the_first_is_taken(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, true);
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_patch(&found, LABEL, JUMPED, "\xe9\x39\0\0\0");
}

/* Agreement up to the next address says little: that puts any flow right. */
static void what_soon_disagrees_again_is_refused(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump(&bench, 3);
	disagree(&bench);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
	make(&bench, false);
	jump(&bench, 8);
	disagree(&bench);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_int_equal(found.patches.count, 1);
	assert_int_equal(found.gaps, 1);
}

/* The label is a tracepoint's; behind it a leaf is called as often as is said; then packets and
 * code disagree. */
static struct found trace_and_call(bool has_tracepoint, unsigned times)
{
	struct bench bench;

	make(&bench, false);
	bench.tracepoints = has_tracepoint;
	/* 7: call LEAF; jne 7; jmp *rcx */
	put(&bench, 7, "\xe8\xf4\0\0\0\x75\xf9\xff\xe1", 9);
	/* call ITERATOR; jmp 7 */
	put(&bench, JUMPED, "\xe8\xdb\0\0\0\xeb\xc0", 7);
	put(&bench, ITERATOR, "\xc3", 1);
	/* jne; ret */
	put(&bench, PROBE, "\x75\0\xc3", 3);
	tnt(&bench, false);
	tnt(&bench, true);
	for (unsigned i = 0; i < 2 * times; i++)
		tnt(&bench, true);
	tnt(&bench, false);
	return decode(&bench, NULL, UINT64_MAX);
}

/* Those are switched on often, and many of them at once: the next one disagrees soon. */
static void a_tracepoint_need_not_explain_as_much(void **state)
{
	struct found found = trace_and_call(true, 40);

	assert_int_equal(found.gaps, 1);
	assert_int_equal(found.patches.count, 1);
	assert_int_equal(found.patches.items[0].change.insn.site, base + LABEL);
	assert_int_equal(found.patches.items[0].change.also.site, base + JUMPED);
	assert_int_equal(found.patches.items[0].change.also.to, base + PROBE);
	found = trace_and_call(true, 10);
	assert_none(&found);
	found = trace_and_call(false, 40);
	assert_none(&found);
}

/* Two tracepoints of one file, of which one or both are switched on, as often as is said. */
static struct found trace_two(bool is_second_on, unsigned times)
{
	struct bench bench;

	make(&bench, false);
	bench.tracepoints = 2;
	/* 7: call LEAF; the second label; jne 7; jmp *rcx */
	put(&bench, 7, "\xe8\xf4\0\0\0\x0f\x1f\x44\0\0\x75\xf4\xff\xe1", 14);
	/* call ITERATOR; jmp 7 */
	put(&bench, JUMPED, "\xe8\xdb\0\0\0\xeb\xc0\xcc", 8);
	/* call SECOND_ITERATOR; jmp behind the second label */
	put(&bench, ROUND, "\xe8\xcb\0\0\0\xeb\xaa", 7);
	put(&bench, ITERATOR, "\xc3", 1);
	put(&bench, SECOND_ITERATOR, "\xc3", 1);
	/* jne; ret */
	put(&bench, PROBE, "\x75\0\xc3", 3);
	/* jne; jne; ret */
	put(&bench, SECOND_PROBE, "\x75\0\x75\0\xc3", 5);
	tnt(&bench, false);
	tnt(&bench, true);
	for (unsigned i = 0; i < times; i++) {
		tnt(&bench, true);
		if (is_second_on) {
			tnt(&bench, false);
			tnt(&bench, false);
			tnt(&bench, true);
		}
		tnt(&bench, true);
	}
	return decode(&bench, NULL, UINT64_MAX);
}

static void what_is_switched_on_together_is_one_patch(void **state)
{
	struct found found = trace_two(true, 1);
	const struct flow_patch *patch = &found.patches.items[0];

	assert_int_equal(found.gaps, 0);
	assert_int_equal(found.patches.count, 1);
	assert_int_equal(patch->change.insn.site, 0);
	assert_non_null(patch->change.group.table);
	assert_int_equal(patch->change.group.user, PROBE_PERF);
	assert_true(patch->change.group.is_on);
}

static void what_is_on_alone_is_no_group(void **state)
{
	struct found found = trace_two(false, 40);

	assert_int_equal(found.gaps, 0);
	assert_int_equal(found.patches.count, 1);
	assert_int_equal(found.patches.items[0].change.insn.site, base + LABEL);
	assert_null(found.patches.items[0].change.group.table);
}

/* It is called again and again, and no other function is. */
static void a_function_that_is_traced_alone_is_no_group(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	bench.has_ftrace = true;
	/* call LEAF; jmp *rcx */
	put(&bench, 0, "\xe8\xfb\0\0\0\xff\xe1", 7);
	/* the call or nop; jne; ret */
	put(&bench, LEAF, "\x0f\x1f\x44\0\0\x75\0\xc3", 8);
	/* call STUB; ret; the same; ret */
	put(&bench, TRAMPOLINE, "\xe8\x1b\0\0\0\xc3", 6);
	put(&bench, REGS_TRAMPOLINE, "\xe8\x0b\0\0\0\xc3", 6);
	put(&bench, STUB, "\xc3", 1);
	/* jne; jne; ret */
	put(&bench, TRACER, "\x75\0\x75\0\xc3", 5);
	for (unsigned i = 0; i < 20; i++) {
		/* the tracer's three, the trampoline's, the function's */
		for (unsigned bit = 0; bit < 6; bit++)
			tnt(&bench, bit > 1 && bit != 4);
		tip(&bench, 0);
	}
	found = decode(&bench, NULL, UINT64_MAX);
	assert_int_equal(found.patches.count, 1);
	assert_non_null(found.patches.items[0].change.ftrace.table);
	assert_int_equal(found.patches.items[0].change.ftrace.site, base + LEAF);
}

/* A wrong turn into a loop takes any conditional branches, until an address is told. */
static void what_only_goes_round_is_refused(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	/* jne 0; jne 0; jmp 0 */
	put(&bench, ROUND, "\x75\x9e\x75\x9c\xeb\x9a", 6);
	for (unsigned i = 0; i < 200; i++)
		tnt(&bench, i % 3 == 0);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

static void what_has_no_label_is_left(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	put(&bench, LABEL, "\x0f\x1f\x40\0\x90", 5);
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

static void the_search_is_bounded(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump(&bench, 6);
	found = decode(&bench, NULL, 0);
	assert_none(&found);
	make(&bench, false);
	jump(&bench, 6);
	found = decode(&bench, NULL, 8);
	assert_none(&found);
}

static void who_finds_may_search_more(void **state)
{
	enum { WORK = 1 << 14 };
	struct bench bench;
	struct found found;

	make(&bench, false);
	jump(&bench, 6);
	found = decode(&bench, NULL, WORK);
	assert_int_equal(found.patches.count, 1);
	assert_true(found.work > WORK);
	make(&bench, false);
	disagree(&bench);
	found = decode(&bench, NULL, WORK);
	assert_none(&found);
	assert_true(found.work < WORK);
}

/* Whoever asks for candidates gets all that explain something, and no patch. */
static void ideas_are_all_that_reach_further(void **state)
{
	static struct patch_candidates candidates;
	struct bench bench;
	struct found found;

	make(&bench, true);
	jump(&bench, 6);
	found = decode(&bench, &candidates, UINT64_MAX);
	assert_none(&found);
	assert_true(found.candidates >= 2);
	assert_true(candidates.asked > 0);
	for (unsigned i = 0; i < candidates.count; i++)
		assert_int_equal(candidates.items[i].patch.from, 0);
	patch_candidates_free(&candidates);
}

/* What a later copy has is no guess, however seldom it is met, and may be a call. */
static void a_later_copy_is_believed(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	bench.has_later = true;
	memcpy(bench.later + LABEL, "\xe8\xf9\0\0\0", 5);
	call(&bench, 2);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_patch(&found, LABEL, LEAF, "\xe8\xf9\0\0\0");
}

/* With a later copy that has the label as it was, it is not likely to have been another. */
static void what_a_later_copy_has_alike_is_not_guessed(void **state)
{
	struct bench bench;
	struct found found;

	make(&bench, false);
	bench.has_later = true;
	bench.later[SIZE - 1] = 0;
	jump(&bench, 6);
	found = decode(&bench, NULL, UINT64_MAX);
	assert_none(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_explains_all_is_taken),
		cmocka_unit_test(what_explains_where_tracing_ends_is_taken),
		cmocka_unit_test(what_is_found_does_not_depend_on_the_size_of_batches),
		cmocka_unit_test(a_target_that_is_not_clear_must_be_met_often),
		cmocka_unit_test(a_target_that_others_reach_is_not_taken),
		cmocka_unit_test(two_that_explain_as_much_are_both_refused),
		cmocka_unit_test(of_two_in_a_row_the_first_is_taken),
		cmocka_unit_test(what_soon_disagrees_again_is_refused),
		cmocka_unit_test(a_tracepoint_need_not_explain_as_much),
		cmocka_unit_test(what_is_switched_on_together_is_one_patch),
		cmocka_unit_test(what_is_on_alone_is_no_group),
		cmocka_unit_test(a_function_that_is_traced_alone_is_no_group),
		cmocka_unit_test(what_only_goes_round_is_refused),
		cmocka_unit_test(what_has_no_label_is_left),
		cmocka_unit_test(the_search_is_bounded),
		cmocka_unit_test(who_finds_may_search_more),
		cmocka_unit_test(ideas_are_all_that_reach_further),
		cmocka_unit_test(a_later_copy_is_believed),
		cmocka_unit_test(what_a_later_copy_has_alike_is_not_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
