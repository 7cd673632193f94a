/* A recording from the beginning to the end. */
#pragma once

#include "decode/base/error.h"
#include "host/machine/roots.h"

struct perf_kernel;
struct record_options;

/**
 * Record until it is over, and say what it came to on standard error.
 *
 * @argc, argv  the command line, for the recording; argv[0] is the verb
 *
 * Returns 0, the exit status of the command that was run meanwhile, or an error; what was recorded
 * until then is kept.
 */
int record(const struct roots *roots, const struct perf_kernel *kernel,
	   const struct record_options *options, int argc, char **argv, struct ptvm_error *error);
