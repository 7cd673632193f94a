/* A printer of a queue without code: for tests of what it prints. */
#pragma once

#include <stdint.h>

#include "decode/code/machines.h"
#include "decode/print/printer.h"

struct print_bench {
	struct pt_config pt;
	struct print_config config;
	struct machines machines;
	struct aux_queue queue;
	struct code code;
	struct flow_code where;
	struct printer printer;
	struct flow_batch batch;
};

/** For CPU 1, process 7 and its thread 8; `letters` as in --itrace. Asserts that it works. */
struct print_bench *print_bench_new(uint32_t fields, const char *letters);

/** What was printed is this and no more; begins anew. */
void print_bench_expect(struct print_bench *bench, const char *expected);

/** Release everything. */
void print_bench_free(struct print_bench *bench);
