/* `script -D`: every record of a recording as bytes and in words, as perf prints them. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "decode/perf_data.h"

/** Who prints the packets of an AUX buffer (what comes below its heading). */
struct perf_dump_packets {
	void (*print)(void *context, const uint8_t *data, uint64_t size);
	void *context;
};

/**
 * Print all of `data` in perf's order: records with a time when it is certain that none before them
 * can follow, the others as they come.
 *
 * @packets  called for the bytes of each AUX buffer, after all before it was given to `out`; NULL
 *           leaves packets out
 *
 * Returns 0, -PTVM_SYSTEM (cannot write) or -PTVM_NO_MEMORY.
 */
int perf_dump(const struct perf_data *data, const struct perf_dump_packets *packets, FILE *out);
