/* What one record says, in the words of perf's dump. */
#pragma once

#include <stdio.h>

#include "decode/code/machine.h"
#include "decode/perf/perf_data.h"

/** The name of a type of record without "PERF_RECORD_"; "INVALID" when there is none. */
const char *perf_text_name(uint32_t type);

/**
 * Print what follows the name, with the newline if perf has one.
 *
 * @event  that a sample is of
 * @host   names code that was patched; NULL: its address is all that is known
 */
void perf_text_print(const struct perf_record *record, const struct perf_event *event,
		     struct machine *host, FILE *out);
