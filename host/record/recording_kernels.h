/* The kernels that a recording comes with: of the host, and of each guest, copied before the trace
 * begins, and once more when it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/error.h"
#include "guest/kernel_copy.h"

struct record_options;
struct record_targets;
struct roots;
struct trace_machine;

struct recorded_kernel {
	const struct trace_machine *machine; /* NULL: the host's */
	struct kernel_copy copy;
	bool is_copied;
	char why[512]; /* it was not */
};

/** Zero-initialise before use. */
struct recording_kernels {
	struct recorded_kernel *items; /* the host's first */
	size_t count;
};

/**
 * Copy those of guests. A kernel that cannot be copied is left out with a warning, unless a way to
 * it was named (--via), or it was interrupted.
 *
 * @recording  path of its directory
 * @targets    borrowed until recording_kernels_free(), which is due in any case
 *
 * Returns 0, -PTVM_NO_MEMORY, -PTVM_SYSTEM (also when it was interrupted), or an error of
 * copy_loop_by_ways().
 */
int recording_kernels_copy_guests(const struct record_options *options,
				  const struct record_targets *targets, const char *recording,
				  struct recording_kernels *ret, struct ptvm_error *error);

/** Copy that of the host, after those of guests, in the same way. */
int recording_kernels_copy_host(const struct roots *roots, const struct record_options *options,
				const char *recording, struct recording_kernels *kernels,
				struct ptvm_error *error);

/** Copy what was copied again, for code that changed or was loaded meanwhile. What cannot be is
 * told, and left out. */
void recording_kernels_copy_again(const struct roots *roots, const struct record_options *options,
				  struct recording_kernels *kernels);

/** Accepts zeroes. */
void recording_kernels_free(struct recording_kernels *kernels);
