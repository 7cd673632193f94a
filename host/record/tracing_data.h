/* What perf must know to open a recording with tracepoints, and to print them: the formats of their
 * samples, as tracefs has them, in a section of the recording. */
#pragma once

#include <stddef.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

/**
 * Make the section.
 *
 * @names  of tracepoints, as "kvm:kvm_entry"; those of one system beside each other
 * @ret    to be freed
 *
 * Returns 0, -PTVM_NOT_FOUND (a format is not readable) or -PTVM_NO_MEMORY.
 */
int tracing_data_make(const struct roots *roots, const char *const *names, size_t count, char **ret,
		      size_t *ret_size);
