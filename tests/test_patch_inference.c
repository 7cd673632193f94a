#include "decode/patch_inference.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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

		if (insn->ip == patch->insn.site)
			return insn->kind == SIM_LABEL &&
			       insn->jumps != (first == 0xeb || first == 0xe9);
	}
	return false;
}

struct learned {
	unsigned count, wrong;
	bool is_wrong; /* the copy */
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
	assert_int_equal(patch_inference_add(&inference, &queue.queue, &where), 0);
	patches = patch_inference_get(&inference);
	ret.count = patches->count;
	for (unsigned i = 0; i < ret.count; i++)
		ret.wrong += !is_so(&vm.machines[patches->items[i].machine != machines.host].kernel,
				    &patches->items[i]);
	ret.is_wrong = inference.is_wrong;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_nothing_changed_there_is_nothing_to_learn),
		cmocka_unit_test(what_is_learned_is_so),
		cmocka_unit_test(a_copy_of_other_code_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
