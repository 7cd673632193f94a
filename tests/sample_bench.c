#include "tests/sample_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void cut(struct sample_bench *bench)
{
	struct sample_segments *segments = &bench->run.segments;
	struct pt_segment segment;
	struct pt_walk walk;

	segments->count = 0;
	pt_walk_init(&walk, &bench->queue.queue, &bench->config, &bench->offsets, 1);
	while (!pt_walk_next(&walk, &segment)) {
		assert_true(segments->count < segments->room);
		segments->items[segments->count++] = (struct sample_segment){ segment, 0 };
	}
}

void sample_bench_make(struct sample_bench *bench, uint64_t seed, bool has_labels)
{
	struct sim_options options = sim_options_plain(seed);
	struct flow_code where = { .pid = 0 };

	options.labels = has_labels;
	options.label_start = 20;
	options.pt.compress_returns = seed & 1;
	bench->config = bench_config(&options);
	sim_vm_run(&options, &bench->vm);
	assert_true(bench_machines(&bench->vm, &bench->machines));
	bench_queue_add(&bench->queue, bench->vm.pt.out.data, bench->vm.pt.out.size, false);
	patch_inference_init(&bench->inference, &bench->config, &bench->machines, &bench->offsets);
	assert_int_equal(trace_sources_add(&bench->inference.sources, &bench->queue.queue, &where),
			 0);
	assert_int_equal(sample_run_init(&bench->inference, UINT64_MAX, UINT64_MAX, &bench->run),
			 0);
	bench->run.segments.room = 1 << 16;
	bench->run.segments.items =
		reallocarray(bench->run.segments.items, bench->run.segments.room,
			     sizeof(*bench->run.segments.items));
	cut(bench);
}

void sample_bench_free(struct sample_bench *bench)
{
	sample_run_free(&bench->run);
	patch_inference_free(&bench->inference);
	bench_queue_free(&bench->queue);
	machines_free(&bench->machines);
	sim_vm_free(&bench->vm);
}
