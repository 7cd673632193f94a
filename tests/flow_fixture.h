/* A flow at some place in made-up code, and the batch that it fills: for tests of its parts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/code/machines.h"
#include "decode/flow/flow_step.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

struct flow_fixture {
	struct machines machines;
	struct code code;
	struct pt_config config;
	struct pt_bytes trace;
	struct bench_queue queue;
	struct pt_flow flow;
	struct flow_batch batch;
	struct flow_run run;
};

/** Zero-initialised: a host and a guest without code; asserts that it works. */
void flow_fixture_init(struct flow_fixture *f);

/** Release everything. */
void flow_fixture_deinit(struct flow_fixture *f);

/** Give the host code (copied). */
void flow_fixture_code(struct flow_fixture *f, uint64_t ip, const void *bytes, size_t size);

/** Begin in 64-bit code of the host at `ip`, and with the first packet of what `trace` has now,
 * which some PADs follow; the batch is empty. */
void flow_fixture_begin(struct flow_fixture *f, uint64_t ip, bool gaps_only);

/** The host's block at `ip`. */
struct block *flow_fixture_block(struct flow_fixture *f, uint64_t ip);

/** The items of the batch are these and no more, `kind(value)` each, as "TO(1000) GAP(2) AT(0)";
 * a block is `BLOCK(ip:count)`, with a + behind the count where its branch was taken, a gap has its
 * kind, TIME its cycles, and a context's value is its index. */
void flow_fixture_expect(const struct flow_fixture *f, const char *items);
