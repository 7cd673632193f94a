/* Copies a kernel while the user waits: shows progress on a terminal, stops on Ctrl-C, and tries
 * one way to the guest after the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/vm/guest_way.h"

struct guest_copy;

/** How to get to a guest. */
struct copy_ways {
	const char *verb; /* said before messages */
	const char *list; /* checked by guest_way_check() */
	struct guest_target target;
	bool is_again; /* it was copied before: what that does to the guest was said */
};

/**
 * Call `next` until it returns 0, and show how far `copy` is.
 *
 * The caller holds signals back (interrupt.h), so that nothing is left behind in the guest or here:
 * one that waits is taken when a step is done.
 *
 * Returns 0, -PTVM_END when it was interrupted, or the error of `next`.
 */
int copy_loop_run(const struct guest_copy *copy,
		  int (*next)(void *context, struct ptvm_error *error), void *context,
		  struct ptvm_error *error);

/**
 * Call `copy` with one way after the other, until it returns 0 or was interrupted, also while the
 * way was opened. Failures are told on standard error, but for the last.
 *
 * Returns 0, -PTVM_END when it was interrupted, or the error of the last way.
 */
int copy_loop_by_ways(const struct copy_ways *ways,
		      int (*copy)(void *context, struct guest_way *way, struct ptvm_error *error),
		      void *context, struct ptvm_error *error);

/** How long ago `begin_ms` of monotonic_ms() was, in seconds. */
double copy_loop_seconds(int64_t begin_ms);

/** A number of bytes in MiB. */
double copy_loop_mib(uint64_t bytes);
