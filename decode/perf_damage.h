/* What of a recording could not be read, in sentences: nothing is left out without a word. */
#pragma once

#include "decode/base/error.h"
#include "decode/perf_data.h"

enum { PERF_DAMAGE_KINDS = 6 };

/**
 * Tell of one kind of damage; when all is read that is wanted.
 *
 * @kind   0 to PERF_DAMAGE_KINDS - 1
 * @error  gets the sentence, with the file's name
 *
 * Returns 0 where there is none of this kind, else -PTVM_BAD_INPUT.
 */
int perf_damage_check(const struct perf_data *data, unsigned kind, struct ptvm_error *error);

/** Whether all pages of its files could be read so far. Returns 0 or -PTVM_BAD_INPUT. */
int perf_damage_check_pages(const struct perf_data *data, struct ptvm_error *error);
