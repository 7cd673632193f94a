/* Any points as the index of a trace: what is accepted must do no harm when the trace is walked
 * from there. The first word of the input is the time that is looked for, the rest the points of
 * the one queue, behind a header that is right. */
#include <stdlib.h>
#include <string.h>

#include "decode/perf/trace_index.h"
#include "decode/pt/timed_walk.h"
#include "tests/flow_bench.h"

enum { HEADER_WORDS = 4, MOST_WORDS = 1 << 16, GRID = 1024, SEGMENT = 300, IDENTITY = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t checksum(const uint64_t *words, size_t count)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ words[i]) * 0x100000001b3;
	return sum;
}

/* Segments must follow on each other, or skip what is not wanted. */
static void walk(const struct sim_vm *vm, uint64_t time_ns, struct trace_points *points)
{
	struct time_ranges times = { .items = { { time_ns, time_ns + 1000 } }, .count = 1 };
	struct pt_config config = bench_config(&vm->options);
	struct bench_queue bench = { .room = 0 };
	struct pt_segment segment;
	struct timed_walk walk;
	uint64_t position = 0;

	config.conv = (struct time_conv){ .valid = true, .mult = 1 };
	bench_queue_add(&bench, vm->pt.out.data, vm->pt.out.size, false);
	timed_walk_init(&walk, &bench.queue, &config, NULL, SEGMENT);
	walk.walk.grid = GRID;
	walk.times = &times;
	walk.points = points;
	while (!timed_walk_next(&walk, &segment)) {
		if (segment.from < position || segment.to < segment.from ||
		    segment.to > bench.queue.size)
			abort();
		position = segment.to;
	}
	bench_queue_free(&bench);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_options options = sim_options_plain(1);
	struct trace_points points = { 0 };
	struct trace_index index = { .identity = IDENTITY, .queues = &points, .queue_count = 1 };
	size_t count = size / 8;
	struct sim_vm vm;
	uint64_t *words;

	if (!count || count > MOST_WORDS)
		return 0;
	words = calloc(HEADER_WORDS + count, sizeof(*words));
	if (!words)
		abort();
	memcpy(words, "ptvmidx2", 8);
	words[1] = IDENTITY;
	words[3] = index.queue_count;
	memcpy(words + HEADER_WORDS, data + 8, (count - 1) * 8);
	words[2] = checksum(words + 3, count);
	options.guests = 1;
	options.instructions = 20000;
	options.pt.psb_bytes = 300;
	sim_vm_run(&options, &vm);
	if (!trace_index_read(&index, (struct bytes){ (const uint8_t *)words,
						      (HEADER_WORDS + count - 1) * 8 }))
		walk(&vm, load_le(data, 8), &points);
	trace_points_free(&points);
	sim_vm_free(&vm);
	free(words);
	return 0;
}
