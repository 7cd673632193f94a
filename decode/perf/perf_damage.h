/* Messages about what of a recording could not be read: nothing is left out silently. */
#pragma once

#include "decode/base/error.h"
#include "decode/perf/perf_data.h"

enum { PERF_DAMAGE_KINDS = 6 };

/**
 * Describe one kind of damage. To be called when everything wanted has been read.
 *
 * @kind   0 to PERF_DAMAGE_KINDS - 1
 * @error  gets the message, with the file's name
 *
 * Returns 0 where there is none of this kind, else -PTVM_BAD_INPUT.
 */
int perf_damage_check(const struct perf_data *data, unsigned kind, struct ptvm_error *error);

/** Whether all pages of the recording's files could be read so far (lost_pages.h). Returns 0 or
 * -PTVM_BAD_INPUT. */
int perf_damage_check_pages(const struct perf_data *data, struct ptvm_error *error);
