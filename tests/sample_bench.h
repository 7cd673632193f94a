/* Samples of simulated kernels, for tests of what is learned from them. */
#pragma once

#include "decode/flow/patch_inference.h"
#include "decode/flow/sample_run.h"
#include "tests/flow_bench.h"

/** Zero-initialise before use. */
struct sample_bench {
	struct sim_vm vm;
	struct pt_config config;
	struct machines machines;
	struct pt_offsets offsets;
	struct bench_queue queue;
	struct patch_inference inference;
	struct sample_run run;
};

/**
 * Begin with all of the trace of a simulation, in smaller segments than usual, so that there are
 * many. Asserts that it works; release with sample_bench_free().
 *
 * @has_labels  jump labels change while it runs
 */
void sample_bench_make(struct sample_bench *bench, uint64_t seed, bool has_labels);

/** Free everything; accepts zeroes. */
void sample_bench_free(struct sample_bench *bench);
