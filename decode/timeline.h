/* All queues of a recording, decoded and printed in order of host time. */
#pragma once

#include <stdint.h>

#include "decode/block.h"
#include "decode/perf_data.h"
#include "decode/printer.h"

/** Where text goes. */
struct timeline_output {
	int fd;
	uint64_t max_lines; /* 0: no limit */
	unsigned threads;   /* that decode; 1: none beside the caller's */
};

/** What came of it. */
struct timeline_result {
	uint64_t gaps[GAP_KINDS];
	uint64_t insns, lines, bytes; /* bytes of trace */
	uint64_t corrections;         /* times held back from running backwards */
	uint64_t translated;          /* TSCs of guests that are not the host's */
	uint64_t labels, first_label; /* jump labels found changed, and the lowest address */
};

/**
 * Decode the queues and write their lines.
 *
 * @queues  of the recording, in order of index; those of unwanted CPUs are passed over
 * @print   what to print
 *
 * Memory is bounded by the number of queues and the size of code, not by the trace.
 * Returns 0; -PTVM_SYSTEM when output cannot be written (EPIPE: nobody reads on); -PTVM_NO_MEMORY.
 */
int timeline_print(const struct aux_queue *queues, size_t count, const struct print_config *print,
		   const struct timeline_output *output, struct timeline_result *ret,
		   struct ptvm_error *error);
