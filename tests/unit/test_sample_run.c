#include "decode/flow/sample_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/sample_bench.h"

/* Samples of simulated kernels whose labels change while they run. */

enum { SEEDS = 40 };

struct fixture {
	struct sample_bench bench;
	struct flow_patches patches;
	struct patch_candidates candidates;
	struct mismatch_log base, all, some;
};

static struct fixture *make(uint64_t seed)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	sample_bench_make(&f->bench, seed, true);
	assert_int_equal(sample_run_settle(&f->bench.run), 0);
	return f;
}

static void finish(struct fixture *f)
{
	sample_bench_free(&f->bench);
	patch_candidates_free(&f->candidates);
	mismatch_log_free(&f->base);
	mismatch_log_free(&f->all);
	mismatch_log_free(&f->some);
	free(f);
}

static void assert_same(const struct mismatch_log *a, const struct mismatch_log *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->items[i].position, b->items[i].position);
		assert_int_equal(a->items[i].kind, b->items[i].kind);
		assert_int_equal(a->items[i].segment, b->items[i].segment);
		assert_int_equal(a->items[i].time, b->items[i].time);
	}
}

static uint64_t time_of(const struct fixture *f, size_t segment)
{
	return f->bench.run.segments.items[segment].segment.clock.now;
}

/* Go through all segments with one more patch, and only through those that come by it while it is
 * in force. Returns how many instructions the latter leaves out. */
static uint64_t compare(struct fixture *f, const struct patch_candidate *candidate, uint64_t since,
			uint64_t until)
{
	struct sample_pass pass = { .patches = &f->patches,
				    .patch = &f->patches.items[0],
				    .odds = &f->base,
				    .segment = candidate->segment,
				    .most = SIZE_MAX };
	uint64_t before = f->bench.run.insns, between;

	f->patches.items[0] = candidate->patch;
	f->patches.items[0].since = since;
	f->patches.items[0].until = until;
	f->patches.count = 1;
	sample_run_pass(&f->bench.run, &pass, &f->all);
	between = f->bench.run.insns;
	pass.base = &f->base;
	sample_run_pass(&f->bench.run, &pass, &f->some);
	assert_same(&f->all, &f->some);
	return (before - between) - (between - f->bench.run.insns);
}

static void run_part(struct fixture *f, struct sample_pass *pass, enum sample_which which,
		     const struct mismatch_log *base, struct mismatch_log *ret)
{
	pass->which = which;
	pass->base = base;
	sample_run_pass(&f->bench.run, pass, ret);
}

/* The same in three parts. Returns how many instructions the first one follows. */
static uint64_t compare_parts(struct fixture *f, const struct patch_candidate *candidate)
{
	struct sample_pass pass = { .patches = &f->patches,
				    .patch = &candidate->patch,
				    .odds = &f->base,
				    .segment = candidate->segment,
				    .most = SIZE_MAX };
	struct mismatch_log near = { 0 }, odds = { 0 };
	uint64_t before = f->bench.run.insns, ret;

	run_part(f, &pass, SAMPLE_NEAR, &f->base, &near);
	ret = before - f->bench.run.insns;
	run_part(f, &pass, SAMPLE_ODDS, &near, &odds);
	run_part(f, &pass, SAMPLE_OTHERS, &odds, &f->some);
	assert_same(&f->all, &f->some);
	mismatch_log_free(&near);
	mismatch_log_free(&odds);
	return ret;
}

/* And in one segment only. Returns how many instructions that follows. */
static uint64_t compare_one(struct fixture *f, const struct patch_candidate *candidate)
{
	struct sample_pass pass = { .patches = &f->patches,
				    .patch = &candidate->patch,
				    .segment = candidate->segment,
				    .most = SIZE_MAX };
	struct mismatch_log one = { 0 }, expected = { 0 };
	uint64_t before = f->bench.run.insns;

	run_part(f, &pass, SAMPLE_ONE, &f->base, &one);
	for (uint32_t i = 0; i < f->bench.run.segments.count; i++) {
		expected.segment = i;
		mismatch_log_add_from(&expected, i == candidate->segment ? &f->all : &f->base);
	}
	assert_same(&one, &expected);
	mismatch_log_free(&one);
	mismatch_log_free(&expected);
	return before - f->bench.run.insns;
}

static void segments_that_do_not_come_by_a_patch_need_not_be_gone_through(void **state)
{
	uint64_t left_out = 0, left_out_then = 0, near = 0, own = 0;
	unsigned tried = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct fixture *f = make(seed);

		sample_run_pass(&f->bench.run,
				&(struct sample_pass){ .patches = &f->patches,
						       .candidates = &f->candidates,
						       .is_noting = true,
						       .most = SIZE_MAX },
				&f->base);
		tried += f->candidates.count;
		for (unsigned i = 0; i < f->candidates.count && i < 16; i++) {
			const struct patch_candidate *candidate = &f->candidates.items[i];
			size_t part = f->bench.run.segments.count / 3;

			left_out_then +=
				compare(f, candidate, time_of(f, part), time_of(f, 2 * part));
			left_out += compare(f, candidate, 0, UINT64_MAX);
			near += compare_parts(f, candidate);
			own += compare_one(f, candidate);
		}
		finish(f);
	}
	assert_true(tried > SEEDS);
	assert_true(left_out > 0);
	assert_true(left_out_then > 2 * left_out);
	assert_true(own > 0 && near > own);
}

/* While a kernel changes its code nothing explains what runs: others are asked, too. */
static void one_segment_is_not_asked_again_and_again(void **state)
{
	unsigned most = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct fixture *f = make(seed);
		struct sample_segment *items = f->bench.run.segments.items;
		size_t count = f->bench.run.segments.count;

		f->bench.run.segments.count = 1;
		for (size_t i = 0; i < count; i++) {
			items[0] = items[i];
			patch_candidates_clear(&f->candidates);
			sample_run_pass(&f->bench.run,
					&(struct sample_pass){ .patches = &f->patches,
							       .candidates = &f->candidates,
							       .most = SIZE_MAX },
					&f->all);
			assert_true(f->candidates.asked <= PATCH_ASKED_SEGMENT);
			if (mismatch_log_against(&f->all) > most)
				most = (unsigned)mismatch_log_against(&f->all);
		}
		finish(f);
	}
	assert_true(most > PATCH_ASKED_SEGMENT);
}

/* So many events are no use to anybody. */
static void a_run_ends_when_there_are_too_many_events(void **state)
{
	unsigned ended = 0;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct fixture *f = make(seed);
		struct sample_pass pass = { .patches = &f->patches, .most = SIZE_MAX };

		sample_run_pass(&f->bench.run, &pass, &f->all);
		pass.most = 1;
		sample_run_pass(&f->bench.run, &pass, &f->some);
		assert_true(f->some.count <= f->all.count);
		ended += f->some.count < f->all.count;
		finish(f);
	}
	assert_true(ended > 0);
}

static void code_disagrees_where_it_has_changed(void **state)
{
	unsigned count = 0;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fixture *f = make(seed);

		for (size_t i = 0; i < f->bench.run.segments.count; i++)
			count += sample_run_disagrees(&f->bench.run, i, i & 1);
		assert_non_null(f->bench.inference.returns.slots);
		finish(f);
	}
	assert_true(count > 0);
}

/* A kernel calls what is in no copy of it, as ftrace does when it is switched on: the call itself
 * is in doubt. */
static void a_call_to_nowhere_disagrees(void **state)
{
	static const uint64_t kernel = 0xffffffff81000000;
	const struct pt_config config = { .tsc = false };
	const struct flow_code where = { .pid = 0 };
	struct fixture *f = calloc(1, sizeof(*f));
	struct pt_bytes trace = { 0 };

	assert_non_null(f);
	assert_true(bench_machines_new(&f->bench.machines));
	assert_true(bench_add_code(f->bench.machines.host, kernel, "\xe8\0\0\x10\0\xc3", 6));
	assert_true(bench_add_function(f->bench.machines.host, kernel));
	pt_put_psb(&trace);
	pt_put_value(&trace, PT_PSBEND, 0);
	pt_put_ip(&trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
	pt_put_ip(&trace, PT_TIP, kernel, PT_IP_AUTO);
	bench_queue_add(&f->bench.queue, trace.data, trace.size, false);
	patch_inference_init(&f->bench.inference, &config, &f->bench.machines, &f->bench.offsets);
	assert_int_equal(
		trace_sources_add(&f->bench.inference.sources, &f->bench.queue.queue, &where), 0);
	assert_int_equal(
		sample_run_init(&f->bench.inference, UINT64_MAX, UINT64_MAX, &f->bench.run), 0);
	assert_int_equal(f->bench.run.segments.count, 1);
	assert_true(sample_run_disagrees(&f->bench.run, 0, false));
	finish(f);
	pt_bytes_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_that_do_not_come_by_a_patch_need_not_be_gone_through),
		cmocka_unit_test(one_segment_is_not_asked_again_and_again),
		cmocka_unit_test(a_run_ends_when_there_are_too_many_events),
		cmocka_unit_test(code_disagrees_where_it_has_changed),
		cmocka_unit_test(a_call_to_nowhere_disagrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
