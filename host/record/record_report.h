/* What a recording came to, for its user: where it is, how large, and what is missing from it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct pause_watch;
struct recorder;
struct trace_loss;

/**
 * Print it, in a line or two.
 *
 * @pauses   has ended; NULL: there is none
 * @is_full  the recording ended because it reached its limit
 */
void record_report_print(const struct recorder *recorder, struct pause_watch *pauses,
			 const struct trace_loss *loss, bool is_full, FILE *out);
