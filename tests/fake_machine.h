/* A machine that replays a recording: a kernel with as many perf events as a recorder opens. Each
 * time that somebody waits for them, some more of the recording goes into their rings. Events get
 * the ids that they had, so that records find them. An event that follows a thread gets the records
 * of that thread's events on all CPUs, and its ring the trace of all CPUs. After each piece of
 * trace, the tracepoint FAKE_PAST_KVM_ENTRY says that a guest was entered. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/fake_kernel.h"
#include "tests/fake_past.h"

enum {
	FAKE_MACHINE_FD = 5000, /* the first; no file has it */
	FAKE_MACHINE_EVENTS = 256,
};

/* An event, and its ring where it owns one. */
struct fake_event {
	struct fake_kernel kernel;
	struct fake_event *owner;  /* itself, until it is redirected */
	struct fake_event *leader; /* of its group; NULL: none */
	uint32_t sample_size;      /* bytes of the leader's trace in each sample */
	uint64_t id;
	uint64_t lost;     /* records that found no room, and were not told of */
	uint64_t lost_all; /* of this event, all that found none */
	int cpu;
	pid_t tid;
	bool is_open, is_trace, is_on;
	uint64_t point;     /* number of a tracepoint; 0: none */
	unsigned past_kind; /* its purpose, by which it is matched with the recording's events */
	bool is_after_stop; /* its trace goes on at a PSB */
};

struct fake_machine {
	struct perf_kernel table; /* give this to what is tested */

	/* Chosen by the test. */
	bool is_lossy;    /* what finds no room is lost; otherwise the machine waits */
	size_t step;      /* how many records each wait lets happen */
	int signal;       /* sent to this process when all has happened; 0: none */
	pid_t dead;       /* a thread that has ended */
	unsigned fail_at; /* the number of the call that fails, from 1; 0: none does */
	int fail_errno;   /* with this */

	struct fake_past past;
	struct fake_event events[FAKE_MACHINE_EVENTS];
	size_t event_count;
	size_t next;        /* of the recording's records */
	uint64_t aux_done;  /* bytes written of an AUX record that is too large for its ring */
	unsigned calls;     /* that could fail */
	unsigned mapped;    /* areas */
	uint64_t stops;     /* how often a trace found no room */
	uint64_t unwritten; /* records that found no room */
	bool is_over;       /* atomic */
	pthread_mutex_t lock;
};

/**
 * Make a machine of a recording, NULL: that in examples; returns 0 or an error as perf_data_open().
 * The machine must not be moved afterwards.
 */
int fake_machine_init(struct fake_machine *machine, const char *recording,
		      struct ptvm_error *error);

/** Release everything, the rings of events included. */
void fake_machine_deinit(struct fake_machine *machine);

/** Events that are open. */
size_t fake_machine_open_count(const struct fake_machine *machine);

/** Whether all records were played. */
bool fake_machine_is_over(const struct fake_machine *machine);
