/* A recording in the making: what is traced, the events and rings, and the directory that it all
 * goes to. Its caller says when to begin, to switch, to take a snapshot, to look around, to end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/record/clock_watch.h"
#include "host/record/drain.h"
#include "host/record/guest_event.h"
#include "host/record/record_targets.h"
#include "host/record/recording_directory.h"
#include "host/record/recording_events.h"
#include "host/record/recording_kernels.h"
#include "host/record/recording_out.h"
#include "host/record/trace_plan.h"
#include "host/record/tracer.h"

struct perf_kernel;
struct record_options;

/** Fill in the first group, and zero the rest. */
struct recorder {
	const struct roots *roots;
	const struct perf_kernel *kernel;
	const struct record_options *options;
	int argc; /* the command line */
	char *const *argv;
	int wake_fd;                   /* see drain.h */
	struct record_targets targets; /* found; recorder_free() releases them */

	struct trace_plan plan;
	struct tracer tracer;
	struct recording_directory directory;
	struct recording_kernels kernels;
	struct recording_events events;
	struct guest_event guests;
	struct recording_out out;
	struct drain drain;
	struct recording_json *json;
	struct clock_watch clocks;
	uint64_t snapshots; /* taken */
	bool is_written;    /* there is something to keep */
	bool is_full; /* the limit was reached while a vCPU was added: nothing drains any more */
};

/**
 * Plan, copy kernels, open events, and write what comes first. The trace is off.
 * Returns 0 or an error; nothing is left behind then, once recorder_free() was called.
 */
int recorder_open(struct recorder *recorder, struct ptvm_error *error);

/** Where something is recorded by now, give up what stood ready in case that nothing would be: an
 * older recording of this name. */
void recorder_keep(struct recorder *recorder);

/** Switch the trace on or off. Returns 0 or -PTVM_SYSTEM. */
int recorder_switch(struct recorder *recorder, bool on, struct ptvm_error *error);

/** Write what the rings of a snapshot recording hold. Returns 0, or as tracer_snapshot(). */
int recorder_snapshot(struct recorder *recorder, struct ptvm_error *error);

/**
 * Look around, some times a second: are there new vCPUs, has a guest's TSC been set?
 * Returns 0 or an error as tracer_add_thread().
 */
int recorder_look(struct recorder *recorder, struct ptvm_error *error);

/**
 * Switch the trace off and complete the recording; what was recorded is kept in any case.
 *
 * @ret_loss  zeroed; filled with what was lost; trace_loss_free() it
 *
 * Returns 0, -PTVM_END (the recording has reached its limit), or the first failure of a thread that
 * wrote it or of the end itself.
 */
int recorder_finish(struct recorder *recorder, struct trace_loss *ret_loss,
		    struct ptvm_error *error);

/** Accepts what is not open. What is not written is removed. */
void recorder_free(struct recorder *recorder);
