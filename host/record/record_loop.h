/* What happens while a recording is made: signals, commands through a FIFO, the end of the command
 * or of the guest, time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/control_fifo.h"
#include "host/record/workload.h"

struct pause_watch;
struct record_options;
struct recorder;

struct record_loop {
	struct recorder *recorder; /* open */
	const struct record_options *options;
	int signals; /* a signalfd, of those that record_loop_signals() blocks */
	int wake;    /* an eventfd: a thread that drains has ended by itself */
	struct control_fifo control;
	struct workload workload;
	struct pause_watch *pauses; /* of domains; NULL: none are watched */
	/* Zero the rest. */
	bool is_over;
	int64_t begun_ms, look_ms, progress_ms; /* of monotonic_ms(); 0: not yet */
	int exit_status;                        /* of the workload */
};

/**
 * Block the signals that a recording waits for, in all threads that are made from now on, and make
 * a signalfd of them. Returns it, or -PTVM_SYSTEM.
 */
int record_loop_signals(struct ptvm_error *error);

/**
 * When there is nothing to lose any more: let SIGINT, SIGTERM and SIGHUP end us again, also while
 * we wait for what may not come, as somebody who reads what we say. One that came meanwhile is
 * dropped, the recording has ended. May be called again.
 */
void record_loop_release(const struct record_loop *loop);

/**
 * Switch the trace on, when it is time to, and wait until it is over.
 * Returns 0, or an error of the recorder, which ends the recording, too.
 */
int record_loop_run(struct record_loop *loop, struct ptvm_error *error);
