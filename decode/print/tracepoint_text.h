/* Samples of tracepoints as text, by libtraceevent, which is loaded when there are some. The
 * library trusts formats and samples, which come from the recording, so it works in a process of
 * its own; if that dies or hangs, samples are shown as bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/text.h"
#include "decode/perf/perf_data.h"

struct machines;

/** Zero-initialise before use. */
struct tracepoint_text {
	pid_t pid;        /* of the process; 0 none */
	int socket;       /* to it, while there is one */
	const char *note; /* why samples are bytes, one line; NULL they are not */
};

/**
 * Start the process. Call it while there are no other threads.
 *
 * @section   the formats (HEADER_TRACING_DATA), possibly none
 * @machines  whose host names the functions that samples point to; complete by now
 */
void tracepoint_text_start(struct tracepoint_text *points, struct bytes section,
			   const struct machines *machines);

/**
 * Append what the sample of a tracepoint says.
 *
 * @id    of the tracepoint, as in its event's config
 * @raw   of the sample
 */
void tracepoint_text_add(struct tracepoint_text *points, uint64_t id, int32_t cpu, uint64_t time_ns,
			 struct bytes raw, struct text *text);

/** End the process, if there is one; accepts zeroes. */
void tracepoint_text_stop(struct tracepoint_text *points);
