/* A recording made by hand, in memory: header, attrs with ids, records, a few features. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"

enum {
	BUILD_PT_TYPE = 8,
	BUILD_PT_CONFIG = 0x300e603, /* pt, cyc, mtc, tsc, branch, mtc_period 3 */
	BUILD_SAMPLE_TYPE = 0x10087, /* IP, TID, TIME, CPU, IDENTIFIER */
};

/** Zero-initialise; perf_build_free() when done. Out of memory aborts the test. */
struct perf_build {
	uint8_t *bytes; /* the records */
	size_t size, room;
	uint8_t *whole; /* the file, once built */
	uint8_t attrs[4096], ids[4096];
	size_t attrs_size, ids_size;
	uint64_t aux_index[64];
	size_t aux_index_count;
	uint64_t reference; /* TSC when the trace of AUXTRACE records was read; 0: some value */
};

/** What a record's trailer says. */
struct build_trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu;
	uint64_t id;
};

/** Add an event with one id, its attr `attr_size` bytes long. */
void perf_build_event(struct perf_build *build, uint32_t type, uint64_t config,
		      uint64_t sample_type, uint64_t id, uint32_t attr_size);

/** Add the PT event, with id 1, and an AUXTRACE_INFO that goes with it. */
void perf_build_pt(struct perf_build *build, uint64_t snapshot, uint64_t per_cpu);

/** Add a record with that body, as it is. */
void perf_build_record(struct perf_build *build, uint32_t type, uint16_t misc, const void *body,
		       size_t size);

/** Add a kernel's record: body and trailer. */
void perf_build_kernel(struct perf_build *build, uint32_t type, uint16_t misc, const void *body,
		       size_t size, struct build_trailer trailer);

/** Add an AUXTRACE record of queue `index` and the CPU of that number. */
void perf_build_aux(struct perf_build *build, uint32_t index, uint64_t offset, const void *trace,
		    size_t size);

/** Add an AUX record on a CPU. */
void perf_build_aux_event(struct perf_build *build, uint32_t cpu, uint64_t time, uint64_t offset,
			  uint64_t size, uint64_t flags);

/** The file with all that was added; with an index of AUXTRACE records. */
struct bytes perf_build_file(struct perf_build *build);

/** The same as a pipe. */
struct bytes perf_build_pipe(struct perf_build *build);

/** Release everything. */
void perf_build_free(struct perf_build *build);
