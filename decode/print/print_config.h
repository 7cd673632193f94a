/* What to print of a recording, and how: settled once by `script` from the options and the
 * recording, and then read by all printers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/number_ranges.h"
#include "decode/print/block_text.h"
#include "decode/print/fields.h"
#include "decode/print/itrace.h"
#include "decode/pt/time_ranges.h"

struct machines;
struct perf_data;
struct pt_config;
struct sample_queues;
struct sideband;
struct trace_index;

struct print_config {
	/* which lines there are */
	struct itrace itrace;
	unsigned records; /* of the recording, that are lines, too: RECORDS_* in record_lines.h */
	struct number_ranges cpus, pids, tids, vcpus, vmcs;
	struct time_ranges times;
	const char *comms; /* list of names of threads, or NULL for any */
	bool guest_only, host_only;

	/* what is in a line, and how it looks */
	uint32_t fields;                     /* FIELD_* of what is made from the trace */
	uint32_t sample_fields[EVENT_KINDS]; /* of the recording's own samples; 0: none of these */
	struct block_style style;
	bool insn_addr;     /* -F addr was asked for: instructions have it too, not only branches */
	bool event_period;  /* -F period was asked for: other events have it, too */
	bool full_insns;    /* lines of instructions have what cannot be prepared: addr, origin */
	unsigned dso_width; /* of the dso before an indented symbol */
	const char *modifier; /* of synthesized events' names, ":k"; "" for none */
	unsigned name_width;  /* of the names of events */
	bool nanoseconds, relative_time, delta_time;
	bool color; /* errors in red */

	/* the recording */
	const struct pt_config *pt;
	const struct machines *machines;
	const struct sideband *sideband; /* NULL for raw traces, as */
	const struct perf_data *data;
	const struct sample_queues *samples; /* whose origin is wanted; NULL none */
	struct bytes mapping;      /* of the file that has the trace; empty: it is in memory */
	struct trace_index *index; /* of the recording, used and made better; NULL none */
	bool timeless;             /* the trace has no time: queues are printed one by one */
	uint64_t segment_bytes;    /* of trace that is decoded in one go; 0: what fits the output */
};

/** Whether each instruction that ran has a line. */
static inline bool prints_every_insn(const struct print_config *config)
{
	return config->itrace.period_unit == PERIOD_INSNS ? config->itrace.period <= 1
							  : !config->itrace.period;
}

/** Whether all branches must be followed, for the lines of others. */
static inline bool follows_branches(const struct print_config *config)
{
	const struct itrace *itrace = &config->itrace;

	return config->fields & FIELD_CALLINDENT || itrace->chain || itrace->last_branches ||
	       itrace->samples.calls || itrace->samples.branches;
}

/** Whether lines have IPC wherever cycles were told, not only where they are exact (ipc.h). */
static inline bool has_approximate_ipc(const struct print_config *config)
{
	return config->itrace.approximate_ipc && config->fields & FIELD_IPC;
}
