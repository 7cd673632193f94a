/* The command line of `ptvm record`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/base/number_ranges.h"
#include "host/machine/pid_list.h"

struct record_options {
	struct {
		const char **items;
		size_t count, room;
	} domains; /* as the user calls them */
	struct pid_list pids, tids;
	struct number_ranges vcpus, cpus; /* count 0: all */
	bool has_cpus, is_all_cpus;       /* -C, -a */
	const char *uri, *event, *via, *filter, *output, *control;
	bool is_per_thread, has_kvm_events;
	bool is_snapshot, is_at_exit;   /* -S, -Se */
	uint64_t snapshot_size;         /* bytes; 0: what a ring holds */
	uint32_t aux_sample_size;       /* bytes, a multiple of 8; 0: a full trace or snapshots */
	uint64_t record_size, aux_size; /* bytes of each ring; 0: the default */
	uint64_t max_size;              /* bytes; 0: no limit */
	uint64_t duration_ms;           /* 0: no limit */
	int64_t delay_ms;               /* -1: until it is enabled */
	const char *repair;             /* do only this, to the recording named */
	char **command;                 /* NULL: none; ends with NULL */
};

/**
 * Parse the arguments.
 *
 * @ret  points into argv; release with record_options_free(), in any case
 *
 * Returns 0, -PTVM_END (help was printed), -PTVM_BAD_USAGE or -PTVM_NO_MEMORY.
 */
int record_options_parse(int argc, char **argv, struct record_options *ret,
			 struct ptvm_error *error);

/** Accepts zeroes. */
void record_options_free(struct record_options *options);
