/* Records of a recording as lines among those of the trace: --show-switch-events and such. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "decode/base/text.h"
#include "decode/print/print_config.h"
#include "decode/print/sample_origin.h"
#include "decode/print/tracepoint_text.h"

/** Which records are lines; a bit each for print_config.records. */
enum {
	RECORDS_SWITCH = 1,
	RECORDS_TASK = 2, /* COMM, FORK, EXIT */
	RECORDS_MMAP = 4,
	RECORDS_LOST = 8,
	RECORDS_SAMPLE = 16, /* of events other than the trace */
	RECORDS_NAMESPACE = 32,
	RECORDS_CGROUP = 64,
	RECORDS_BPF = 128,       /* KSYMBOL, BPF_EVENT */
	RECORDS_TEXT_POKE = 256, /* KSYMBOL, TEXT_POKE */
};

struct record_lines {
	const struct print_config *config;
	size_t next; /* in the recording's records, of the one after the present one */
	char *words; /* of the stream */
	size_t words_size;
	FILE *stream; /* NULL: no records are wanted */
	struct text text;
	struct tracepoint_text points;
	bool left_out;    /* there were some that the options do not want */
	uint64_t time_ns; /* of the present one; UINT64_MAX when there is none */
};

/** Go to the first record that may be a line. Returns 0 or -PTVM_NO_MEMORY; record_lines_free() in
 * any case. */
int record_lines_init(struct record_lines *lines, const struct print_config *config);

/** Go to the next record that may be a line. */
void record_lines_next(struct record_lines *lines);

/**
 * Make the line of the present one; `text` is empty where it turns out that there is none.
 *
 * @origin  of a sample; empty where nothing is known
 */
void record_lines_make(struct record_lines *lines, const struct sample_origin *origin);

/** Release everything; accepts what record_lines_init() failed on. */
void record_lines_free(struct record_lines *lines);
