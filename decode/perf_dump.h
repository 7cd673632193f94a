/* `script -D`: every record of a recording as bytes and in words, as perf prints them. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "decode/base/number_ranges.h"
#include "decode/code/machine.h"
#include "decode/perf/perf_data.h"

struct perf_dump_options {
	/* Prints the packets of an AUX buffer (what comes below its heading); called after all
	 * before it was given to `out`. NULL leaves packets out, heading and all. */
	void (*print_packets)(void *context, const uint8_t *data, uint64_t size);
	void *context;
	struct machine *host;      /* names code that was patched; NULL: it has no names */
	struct number_ranges cpus; /* whose records and buffers; also what is of no CPU */
};

/**
 * Print all of `data` in perf's order: records with a time as soon as it is certain that no earlier
 * one can follow, the others at once.
 *
 * Returns 0, -PTVM_SYSTEM (cannot write: the rest is left out) or -PTVM_NO_MEMORY.
 */
int perf_dump(const struct perf_data *data, const struct perf_dump_options *options, FILE *out);
