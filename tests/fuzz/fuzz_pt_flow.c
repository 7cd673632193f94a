/* Any bytes as the trace of a fixed simulated host and its guests: the flow comes to an end, and is
 * counted as it is listed. The first byte chooses how the trace was made and how it is cut into
 * spans. */
#include <stdlib.h>

#include "tests/flow_bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Programs only; what they would do does not matter here. */
static void make_machines(struct machines *ret)
{
	struct sim_options options = sim_options_plain(1);
	struct sim_vm vm;

	options.guests = SIM_GUESTS;
	options.user = options.tsx = options.ptwrite = true;
	options.instructions = 0;
	sim_vm_run(&options, &vm);
	if (!bench_machines(&vm, ret))
		abort();
	sim_vm_free(&vm);
}

static void assert_counted(const struct aux_queue *queue, const struct pt_config *config,
			   const struct machines *machines)
{
	struct bench_count listed, counted;

	bench_count(queue, config, machines, false, &listed);
	bench_count(queue, config, machines, true, &counted);
	if (counted.insns != listed.insns || counted.gaps.count != listed.gaps.count)
		abort();
	bench_list_free(&listed.gaps);
	bench_list_free(&counted.gaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_options options = sim_options_plain(1);
	struct bench_queue queue = { 0 };
	struct machines machines;
	struct pt_config config;
	size_t middle;

	if (size < 2)
		return 0;
	options.pt.mtc_shift = data[0] & 0xf;
	options.pt.compress_returns = data[0] & 0x10;
	options.event_trace = data[0] & 0x20;
	middle = data[0] & 0x40 ? size / 2 : size;
	make_machines(&machines);
	config = bench_config(&options);
	bench_queue_add(&queue, data + 1, middle - 1, false);
	bench_queue_add(&queue, data + middle, size - middle, data[0] & 0x80);
	bench_decode(&queue.queue, &config, &machines, size / 4, NULL);
	assert_counted(&queue.queue, &config, &machines);
	bench_queue_free(&queue);
	machines_free(&machines);
	return 0;
}
