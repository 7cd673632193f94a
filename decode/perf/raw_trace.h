/* A trace without a recording: a file of packets, and what the user says of it (`--pt` and the
 * options that go with it). */
#pragma once

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/pt/aux_queue.h"
#include "decode/pt/pt_config.h"

/** Zero-initialise before use. */
struct raw_trace {
	struct bytes file; /* mapped */
	struct aux_span span;
	struct aux_queue queue;
};

/** A file and what follows it in an argument such as FILE[:from[-to]][:address]. */
struct file_range {
	char path[4096];
	uint64_t from, to; /* to 0: the end of the file */
	uint64_t address;
	bool have_address;
};

/**
 * Parse FILE[:from[-to]] (`with_address` false), or FILE[:from[-to]]:ADDRESS. Numbers as in C.
 * Returns 0 or -PTVM_BAD_USAGE.
 */
int file_range_parse(const char *text, bool with_address, struct file_range *ret,
		     struct ptvm_error *error);

/**
 * Map the trace; raw_trace_close() in any case. Returns 0, -PTVM_SYSTEM, or -PTVM_BAD_INPUT:
 * nothing is in the range, or all of the file is a recording.
 */
int raw_trace_open(const struct file_range *range, struct raw_trace *ret, struct ptvm_error *error);

/** Unmap; accepts zeroes. */
void raw_trace_close(struct raw_trace *trace);

/** Parse the argument of --cpu in its FAMILY/MODEL[/STEPPING] form into `config`. Returns 0 or
 * -PTVM_BAD_USAGE. */
int raw_trace_parse_cpu(const char *text, struct pt_config *config, struct ptvm_error *error);
