/* The threads that empty the rings into the recording, each a set of them. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/trace_loss.h"

struct recording_out;
struct tracer;

/** A thread, and the rings that are its own. */
struct drain_worker {
	struct drain *drain;
	pthread_t thread;
	size_t first, end; /* rings */
	uint64_t epoch;    /* the last one that it went through from the beginning */
	int result;
	struct ptvm_error error;
};

/** Fill in the first group, and zero the rest. */
struct drain {
	struct tracer *tracer;
	struct recording_out *out;
	uint64_t max_size; /* of the recording, bytes; 0: no limit */
	int wake_fd;       /* an eventfd, written to when a thread ends by itself; -1: none */

	struct drain_worker *workers;
	size_t worker_count;
	bool stop; /* atomic */
	pthread_mutex_t lock;
	uint64_t epoch;            /* counts rounds, see recording_out_round() */
	bool is_round_begun;       /* something was written since the last */
	struct trace_loss *losses; /* of each ring */
	size_t loss_count;
};

/**
 * Start to drain. Rings may have been added since it was stopped.
 * Returns 0, -PTVM_NO_MEMORY or -PTVM_SYSTEM: nothing runs then.
 */
int drain_start(struct drain *drain, struct ptvm_error *error);

/**
 * Drain what is there by now, and stop; also when nothing runs.
 *
 * Returns 0; -PTVM_END, the recording has reached its limit; or the first failure of a thread, as
 * tracer_drain().
 */
int drain_stop(struct drain *drain, struct ptvm_error *error);

/** Add up what was lost, once it was stopped for good. Returns 0 or -PTVM_NO_MEMORY. */
int drain_losses(struct drain *drain, struct trace_loss *ret);

/** Stops it first. */
void drain_free(struct drain *drain);
