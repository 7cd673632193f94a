/* What a recording says happened on a machine, in the form that fake_machine.h replays. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/pt/time_conv.h"
#include "tests/fake_tree.h"

enum { FAKE_PAST_CPUS = 8, FAKE_PAST_AUX = 11, FAKE_PAST_KVM_ENTRY = 115 };

/** A record of the kernel. */
struct past_record {
	struct bytes data; /* without its trailer, which says: */
	uint64_t id, time;
	int32_t pid, tid, cpu;
	uint32_t type;
	struct bytes trace; /* of FAKE_PAST_AUX: what it names, as far as the recording has it */
};

/** An id of an event. */
struct past_id {
	const uint8_t *attr; /* of 128 bytes */
	uint64_t id;
	int64_t cpu, tid;
};

struct perf_data;

struct fake_past {
	struct past_record
		*records; /* in order of time; of those from before only the guest's maps */
	size_t record_count;
	struct past_id *ids;
	size_t id_count;
	struct time_conv conv;
	struct perf_data *from;
	struct fake_stream {
		uint8_t *data;
		uint64_t size;
	} streams[FAKE_PAST_CPUS]; /* the traces of CPUs */
};

/** Load a recording; returns 0 or an error as perf_data_open(). fake_past_free() in any case. */
int fake_past_load(struct fake_past *past, const char *recording, struct ptvm_error *error);

/** Release everything. */
void fake_past_free(struct fake_past *past);

/** Make the trees of that machine: PMU, kernel, and the processes that were recorded. */
void fake_past_tree(const struct fake_past *past, const struct fake_tree *tree);
