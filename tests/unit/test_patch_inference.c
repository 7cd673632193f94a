#include "decode/flow/patch_inference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "decode/flow/trace_sample.h"
#include "tests/flow_bench.h"

/* Patches inferred from traces of simulated kernels, of which every label is known. */

enum { SEEDS = 60 };

static struct sim_options with_labels(uint64_t seed)
{
	struct sim_options options = sim_options_plain(seed);

	options.labels = true;
	options.pt.compress_returns = seed & 1;
	return options;
}

/* Whether the label is in another form than that of its bytes. Where it leads to is not asked: in
 * made-up code the same packets fit what lies next to that, too. */
static bool is_so(const struct sim_code *code, const struct flow_patch *patch)
{
	for (size_t i = 0; i < code->insns.count; i++) {
		const struct sim_insn *insn = &code->insns.items[i];
		uint8_t first = code->bytes[insn->ip - code->base];

		if (insn->ip == patch->change.insn.site)
			return insn->kind == SIM_LABEL &&
			       insn->jumps != (first == 0xeb || first == 0xe9);
	}
	return false;
}

struct learned {
	unsigned count, wrong;
	bool is_wrong;      /* the copy */
	bool knows_returns; /* where functions return to */
};

/* From what ran in one simulation, with the code of another or of the same. */
static struct learned learn(const struct sim_options *options, const struct sim_options *copied)
{
	struct pt_config config = bench_config(options);
	struct flow_code where = { .pid = 0 };
	struct pt_offsets offsets = { 0 };
	struct bench_queue queue = { 0 };
	const struct flow_patches *patches;
	struct patch_inference inference;
	struct machines machines;
	struct learned ret = { 0 };
	struct sim_vm vm, copy;

	sim_vm_run(options, &vm);
	sim_vm_run(copied, &copy);
	assert_true(bench_machines(&copy, &machines));
	bench_queue_add(&queue, vm.pt.out.data, vm.pt.out.size, false);
	patch_inference_init(&inference, &config, &machines, &offsets);
	assert_int_equal(trace_sources_add(&inference.sources, &queue.queue, &where), 0);
	patches = patch_inference_get(&inference);
	ret.count = patches->count;
	for (unsigned i = 0; i < ret.count; i++)
		ret.wrong += !is_so(&vm.machines[patches->items[i].machine != machines.host].kernel,
				    &patches->items[i]);
	ret.is_wrong = inference.is_wrong;
	ret.knows_returns = patch_inference_returns(&inference)->slots;
	assert_ptr_equal(patch_inference_get(&inference), patches);
	assert_int_equal(patches->count, ret.count);
	patch_inference_free(&inference);
	bench_queue_free(&queue);
	machines_free(&machines);
	sim_vm_free(&vm);
	sim_vm_free(&copy);
	return ret;
}

static void where_nothing_changed_there_is_nothing_to_learn(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = with_labels(seed);

		assert_int_equal(learn(&options, &options).count, 0);
	}
}

/* Where the kernel is as copied, programs may still come from code that is not known. */
static void where_functions_return_to_is_always_seen(void **state)
{
	struct sim_options options = sim_options_plain(1);

	assert_true(learn(&options, &options).knows_returns);
}

/* Made-up code is small and full of labels, so that there is some chance in it. */
static void what_is_learned_is_so(void **state)
{
	struct learned all = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = with_labels(seed);
		struct learned learned;

		options.label_start = 20;
		learned = learn(&options, &options);
		all.count += learned.count;
		all.wrong += learned.wrong;
	}
	assert_true(all.count > 0);
	assert_true(all.wrong * 20 <= all.count);
}

static void a_copy_of_other_code_is_noticed(void **state)
{
	struct sim_options options = with_labels(1), other = with_labels(2);

	assert_false(learn(&options, &options).is_wrong);
	assert_true(learn(&options, &other).is_wrong);
}

/* A kernel with four functions, each with a tracepoint's label that is off in its copy:
 *     xor eax, eax; label; jmp *rcx
 * and where the label leads: call the iterator; jmp behind the label. Probes have a conditional
 * branch, but that of the third tracepoint. Returns are not compressed. */
enum {
	FUNCTION = 0x80, /* bytes of each */
	HOOK = 0x40,
	CALL_SIZE = 5,
	ITERATORS = 0x200,
	PROBES = 0x300,
	APART = 0x10,
	SIZE = 0x400,
	FUNCTIONS = 4,
	SILENT = 2,
	OTHER = 3,
	SPACE = 80, /* bytes of trace between visits */
	PAIR = 2,   /* functions of one of two keys */
};

static const uint64_t base = 0xffffffff81000000;

static void put_call(uint8_t *image, size_t at, size_t to)
{
	int32_t distance = (int32_t)(to - (at + CALL_SIZE));

	image[at] = 0xe8;
	memcpy(image + at + 1, &distance, sizeof(distance));
}

static void make_kernel(uint8_t image[SIZE])
{
	memset(image, 0xcc, SIZE);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		memcpy(image + i * FUNCTION, "\x31\xc0\x0f\x1f\x44\0\0\xff\xe1", 9);
		put_call(image, i * FUNCTION + HOOK, ITERATORS + i * APART);
		memcpy(image + i * FUNCTION + HOOK + CALL_SIZE, "\xeb\xc0", 2);
		image[ITERATORS + i * APART] = 0xc3;
		memcpy(image + PROBES + i * APART, i == SILENT ? "\xc3\xcc\xcc" : "\x75\0\xc3", 3);
	}
}

static void load_kernel(struct machine *machine)
{
	static const char *const names[] = {
		"__traceiter_w", "__traceiter_x", "__traceiter_y", "__traceiter_z",
		"perf_trace_w",  "perf_trace_x",  "perf_trace_y",  "perf_trace_z",
	};
	uint8_t image[SIZE];

	make_kernel(image);
	assert_true(bench_add_code(machine, base, image, SIZE));
	for (unsigned i = 0; i < 2 * FUNCTIONS; i++) {
		size_t at = i < FUNCTIONS ? ITERATORS : PROBES;
		struct symbol symbol = { .start = base + at + i % FUNCTIONS * APART,
					 .name = names[i] };

		assert_int_equal(symbols_add(&machine->symbols, &symbol), 0);
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_true(bench_add_function(machine, base + i * FUNCTION));
	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
}

/* The same without tracepoints: labels of one key, by the kernel's own table. Where they lead is a
 * conditional branch, but in the silent function an instruction that packets do not show. */
static void load_kernel_of_key(struct machine *machine)
{
	struct label_table *labels = &machine->labels;
	uint8_t image[SIZE];

	make_kernel(image);
	*labels = (struct label_table){ .from = base, .to = base + SIZE, .count = FUNCTIONS };
	labels->items = calloc(FUNCTIONS, sizeof(*labels->items));
	assert_non_null(labels->items);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		uint64_t function = base + i * FUNCTION;

		memcpy(image + i * FUNCTION + HOOK, i == SILENT ? "\x31\xdb" : "\x75\0", 2);
		memcpy(image + i * FUNCTION + HOOK + 2, "\xeb\xc3", 2);
		labels->items[i] = (struct label_entry){ .site = function + 2,
							 .target = function + HOOK,
							 .next = (i + 1) % FUNCTIONS,
							 .size = 5 };
		assert_true(bench_add_function(machine, function));
	}
	assert_true(bench_add_code(machine, base, image, SIZE));
	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
}

/* Two such kernels beside each other: the labels of the two keys are met equally often. */
static void load_kernel_of_two_keys(struct machine *machine)
{
	struct label_table *labels = &machine->labels;
	uint8_t image[SIZE];

	memset(image, 0xcc, SIZE);
	*labels = (struct label_table){ .from = base, .to = base + SIZE, .count = 2 * PAIR };
	labels->items = calloc(2 * PAIR, sizeof(*labels->items));
	assert_non_null(labels->items);
	for (unsigned i = 0; i < 2 * PAIR; i++) {
		uint64_t function = base + i * FUNCTION;

		memcpy(image + i * FUNCTION, "\x31\xc0\x0f\x1f\x44\0\0\xff\xe1", 9);
		memcpy(image + i * FUNCTION + HOOK, "\x75\0\xeb\xc3", 4);
		labels->items[i] = (struct label_entry){ .site = function + 2,
							 .target = function + HOOK,
							 .key = base + i / PAIR,
							 .next = i ^ 1,
							 .size = 5 };
		assert_true(bench_add_function(machine, function));
	}
	assert_true(bench_add_code(machine, base, image, SIZE));
	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
}

static void put_begin(struct pt_bytes *trace, unsigned function)
{
	pt_put_psb(trace);
	pt_put_value(trace, PT_PSBEND, 0);
	pt_put_ip(trace, PT_TIP_PGE, base + function * FUNCTION, PT_IP_AUTO);
}

/* A function runs with its tracepoint on or off, and jumps to another one. */
static void put_visit(struct pt_bytes *trace, unsigned function, bool is_on, unsigned next)
{
	const struct pt_packet tnt = { .kind = PT_TNT, .count = 1 };
	static const uint8_t space[SPACE];

	if (is_on && function != SILENT)
		pt_put(trace, &tnt);
	if (is_on)
		pt_put_ip(trace, PT_TIP, base + function * FUNCTION + HOOK + CALL_SIZE, PT_IP_AUTO);
	pt_put_ip(trace, PT_TIP, base + next * FUNCTION, PT_IP_AUTO);
	pt_put_bytes(trace, space, sizeof(space));
}

/* The same of a label without a tracepoint. */
static void put_visit_of_key(struct pt_bytes *trace, bool is_silent, unsigned next)
{
	const struct pt_packet tnt = { .kind = PT_TNT, .count = 1 };
	static const uint8_t space[SPACE];

	if (!is_silent)
		pt_put(trace, &tnt);
	pt_put_ip(trace, PT_TIP, base + next * FUNCTION, PT_IP_AUTO);
	pt_put_bytes(trace, space, sizeof(space));
}

struct bench {
	struct pt_config config;
	struct machines machines;
	struct pt_bytes trace;
	struct bench_queue queue;
	struct patch_inference inference;
};

static void begin_inference(struct bench *bench)
{
	pt_put_ip(&bench->trace, PT_TIP_PGD, 0, 0);
	bench_queue_add(&bench->queue, bench->trace.data, bench->trace.size, false);
	patch_inference_init(&bench->inference, &bench->config, &bench->machines,
			     &(struct pt_offsets){ 0 });
	assert_int_equal(trace_sources_add(&bench->inference.sources, &bench->queue.queue,
					   &(struct flow_code){ .pid = 0 }),
			 0);
}

/* First two functions run with their tracepoints on, each so often twice in a row: the flow that is
 * lost in the one visit is found again in the next. Then the silent one, in a segment of its own.
 */
static void begin_with(struct bench *bench, unsigned times, bool has_key)
{
	*bench = (struct bench){ .config = { .noretcomp = true } };
	assert_true(bench_machines_new(&bench->machines));
	if (has_key)
		load_kernel_of_key(bench->machines.host);
	else
		load_kernel(bench->machines.host);
	put_begin(&bench->trace, 0);
	for (unsigned i = 0; i < 4 * times && has_key; i++)
		put_visit_of_key(&bench->trace, false, (i + 1) / 2 % 2);
	for (unsigned i = 0; i < 4 * times && !has_key; i++)
		put_visit(&bench->trace, i / 2 % 2, true, (i + 1) / 2 % 2);
	put_begin(&bench->trace, SILENT);
	if (has_key)
		put_visit_of_key(&bench->trace, true, SILENT);
	else
		put_visit(&bench->trace, SILENT, true, SILENT);
	begin_inference(bench);
}

static void begin(struct bench *bench, unsigned times)
{
	begin_with(bench, times, false);
}

static void end(struct bench *bench)
{
	patch_inference_free(&bench->inference);
	bench_queue_free(&bench->queue);
	machines_free(&bench->machines);
	pt_bytes_free(&bench->trace);
}

struct outcome {
	uint64_t insns;
	uint32_t gaps, patches;
};

/* Decode the last segment alone. */
static struct outcome decode_last(struct bench *bench, bool gaps_only)
{
	static struct flow_batch batch;
	static struct pt_flow flow;
	struct flow_code where = { .pid = 0, .inference = &bench->inference };
	struct pt_segment segment;
	struct pt_walk walk;
	struct code code;

	pt_walk_init(&walk, &bench->queue.queue, &bench->config, NULL, 0);
	while (!pt_walk_next(&walk, &segment))
		;
	code_init(&code, &bench->machines);
	where.code = &code;
	pt_flow_init(&flow, &segment, &bench->config, &where, gaps_only);
	batch.room = FLOW_BATCH;
	while (!pt_flow_run(&flow, &batch))
		;
	code_free(&code);
	return (struct outcome){ flow.insns, flow.gaps, flow.patches.count };
}

static void what_is_switched_on_together_is_learned_as_one(void **state)
{
	const struct flow_patches *patches;
	struct bench bench;

	begin(&bench, 20);
	patches = patch_inference_get(&bench.inference);
	assert_int_equal(patches->count, 1);
	assert_non_null(patches->items[0].change.group.table);
	assert_int_equal(patches->items[0].change.group.user, PROBE_PERF);
	assert_true(patches->items[0].change.group.is_on);
	assert_int_equal(patches->items[0].since, 0);
	assert_int_equal(patches->items[0].until, UINT64_MAX);
	end(&bench);
}

/* A return that nobody expects looks like a jump. */
static void what_never_disagrees_is_told_as_others_learned(void **state)
{
	struct outcome text, errors;
	struct bench bench;

	begin(&bench, 20);
	text = decode_last(&bench, false);
	assert_int_equal(text.gaps, 0);
	assert_int_equal(text.patches, 1);
	errors = decode_last(&bench, true);
	assert_int_equal(errors.gaps, 0);
	assert_int_equal(errors.patches, 0);
	assert_int_equal(text.insns, errors.insns + 2); /* the call of the probe, and its return */
	end(&bench);
}

/* A label that packets never show is patched, too. */
static void labels_of_a_key_are_learned_as_one(void **state)
{
	const struct flow_patches *patches;
	struct outcome text, errors;
	struct bench bench;

	begin_with(&bench, 20, true);
	patches = patch_inference_get(&bench.inference);
	assert_int_equal(patches->count, 1);
	assert_non_null(patches->items[0].change.key.table);
	text = decode_last(&bench, false);
	assert_int_equal(text.gaps, 0);
	assert_int_equal(text.patches, 1);
	errors = decode_last(&bench, true);
	/* what it leads to and the way back, in both visits */
	assert_int_equal(text.insns, errors.insns + 4);
	end(&bench);
}

/* Three functions run so often, the first one with its tracepoint on or not, the others likewise;
 * each time is one later. */
static void put_phase(struct bench *bench, uint64_t *tsc, unsigned times, bool first, bool others)
{
	static const unsigned functions[] = { 0, 1, OTHER };

	for (unsigned i = 0; i < 6 * times; i++) {
		unsigned index = i / 2 % 3;

		pt_put_value(&bench->trace, PT_TSC, ++*tsc);
		put_visit(&bench->trace, functions[index], index ? others : first,
			  functions[(i + 1) / 2 % 3]);
	}
}

/* One is on for a while before the others. Beside the group it explains little, and the group
 * without it would be wrong as often as right. */
static void one_that_was_switched_on_before_its_group_stays(void **state)
{
	const struct flow_patches *patches;
	struct bench bench = { .config = { .noretcomp = true } };
	uint64_t tsc = 0, first, second;

	assert_true(bench_machines_new(&bench.machines));
	load_kernel(bench.machines.host);
	put_begin(&bench.trace, 0);
	put_phase(&bench, &tsc, 10, false, false);
	first = tsc;
	put_phase(&bench, &tsc, 6, true, false);
	second = tsc;
	put_phase(&bench, &tsc, 30, true, true);
	put_begin(&bench.trace, SILENT);
	put_visit(&bench.trace, SILENT, true, SILENT);
	begin_inference(&bench);
	patches = patch_inference_get(&bench.inference);
	assert_int_equal(patches->count, 2);
	assert_null(patches->items[0].change.group.table);
	assert_int_equal(patches->items[0].change.insn.site, base + 2);
	assert_in_range(patches->items[0].since, first - 6, first + 1);
	assert_non_null(patches->items[1].change.group.table);
	assert_in_range(patches->items[1].since, second - 6, second + 6);
	end(&bench);
}

/* What explains as much is no rival if it explains other places. Each key has its segment. */
static void keys_that_are_met_equally_often_are_both_learned(void **state)
{
	const struct flow_patches *patches;
	struct bench bench = { .config = { .noretcomp = true } };

	assert_true(bench_machines_new(&bench.machines));
	load_kernel_of_two_keys(bench.machines.host);
	for (unsigned first = 0; first < 2 * PAIR; first += PAIR) {
		put_begin(&bench.trace, first);
		for (unsigned i = 0; i < SAMPLE_BYTES / SPACE; i++)
			put_visit_of_key(&bench.trace, false, first + (i + 1) / 2 % 2);
	}
	pt_put_psb(&bench.trace);
	pt_put_value(&bench.trace, PT_PSBEND, 0);
	begin_inference(&bench);
	patches = patch_inference_get(&bench.inference);
	assert_int_equal(patches->count, 2);
	assert_non_null(patches->items[0].change.key.table);
	assert_non_null(patches->items[1].change.key.table);
	end(&bench);
}

/* Nothing disagrees anywhere. */
static void without_disagreement_code_is_as_copied(void **state)
{
	struct bench bench;

	begin(&bench, 0);
	assert_int_equal(decode_last(&bench, false).patches, 0);
	assert_int_equal(patch_inference_get(&bench.inference)->count, 0);
	end(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_nothing_changed_there_is_nothing_to_learn),
		cmocka_unit_test(where_functions_return_to_is_always_seen),
		cmocka_unit_test(what_is_learned_is_so),
		cmocka_unit_test(a_copy_of_other_code_is_noticed),
		cmocka_unit_test(what_is_switched_on_together_is_learned_as_one),
		cmocka_unit_test(what_never_disagrees_is_told_as_others_learned),
		cmocka_unit_test(labels_of_a_key_are_learned_as_one),
		cmocka_unit_test(one_that_was_switched_on_before_its_group_stays),
		cmocka_unit_test(keys_that_are_met_equally_often_are_both_learned),
		cmocka_unit_test(without_disagreement_code_is_as_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
