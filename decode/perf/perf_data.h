/* A recording as perf wrote it: header, attrs, features, records in order of time, AUX queues.
 * Knows the container only; what records mean for threads and code is in sideband.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"
#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/perf/build_id.h"
#include "decode/pt/aux_pages.h"
#include "decode/pt/aux_queue.h"
#include "decode/pt/pt_config.h"

enum perf_record_type {
	PERF_MMAP = 1,
	PERF_LOST = 2,
	PERF_COMM = 3,
	PERF_EXIT = 4,
	PERF_THROTTLE = 5,
	PERF_UNTHROTTLE = 6,
	PERF_FORK = 7,
	PERF_READ = 8,
	PERF_SAMPLE = 9,
	PERF_MMAP2 = 10,
	PERF_AUX = 11,
	PERF_ITRACE_START = 12,
	PERF_LOST_SAMPLES = 13,
	PERF_SWITCH = 14,
	PERF_SWITCH_CPU_WIDE = 15,
	PERF_NAMESPACES = 16,
	PERF_KSYMBOL = 17,
	PERF_BPF_EVENT = 18,
	PERF_CGROUP = 19,
	PERF_TEXT_POKE = 20,
	PERF_AUX_OUTPUT_HW_ID = 21,
	PERF_HEADER_ATTR = 64,
	PERF_HEADER_EVENT_TYPE = 65,
	PERF_TRACING_DATA = 66,
	PERF_HEADER_BUILD_ID = 67,
	PERF_FINISHED_ROUND = 68,
	PERF_ID_INDEX = 69,
	PERF_AUXTRACE_INFO = 70,
	PERF_AUXTRACE = 71,
	PERF_AUXTRACE_ERROR = 72,
	PERF_THREAD_MAP = 73,
	PERF_CPU_MAP = 74,
	PERF_STAT_CONFIG = 75,
	PERF_STAT = 76,
	PERF_STAT_ROUND = 77,
	PERF_EVENT_UPDATE = 78,
	PERF_TIME_CONV = 79,
	PERF_HEADER_FEATURE = 80,
	PERF_COMPRESSED = 81,
	PERF_FINISHED_INIT = 82,
	PERF_COMPRESSED2 = 83,
};

/** One event of the recording: an attr with its ids. */
struct perf_event {
	uint32_t type;
	uint64_t config, sample_type, read_format, flags; /* flags: the bit field at offset 40 */
	uint64_t sample_period;
	uint64_t branch_sample_type, sample_regs_user, sample_regs_intr;
	const char *name; /* "" unknown */
	const uint64_t *ids;
	size_t id_count;
	struct bytes attr; /* as in the file */
	bool is_pt;
};

/** Values of `type` (linux/perf_event.h, enum perf_type_id). */
enum { PERF_EVENT_HARDWARE = 0, PERF_EVENT_SOFTWARE = 1, PERF_EVENT_TRACEPOINT = 2 };

/** Bits of sample_type. */
enum {
	PERF_SAMPLE_IP = 1 << 0,
	PERF_SAMPLE_TID = 1 << 1,
	PERF_SAMPLE_TIME = 1 << 2,
	PERF_SAMPLE_ADDR = 1 << 3,
	PERF_SAMPLE_READ = 1 << 4,
	PERF_SAMPLE_CALLCHAIN = 1 << 5,
	PERF_SAMPLE_ID = 1 << 6,
	PERF_SAMPLE_CPU = 1 << 7,
	PERF_SAMPLE_PERIOD = 1 << 8,
	PERF_SAMPLE_STREAM_ID = 1 << 9,
	PERF_SAMPLE_RAW = 1 << 10,
	PERF_SAMPLE_BRANCH_STACK = 1 << 11,
	PERF_SAMPLE_REGS_USER = 1 << 12,
	PERF_SAMPLE_STACK_USER = 1 << 13,
	PERF_SAMPLE_WEIGHT = 1 << 14,
	PERF_SAMPLE_DATA_SRC = 1 << 15,
	PERF_SAMPLE_IDENTIFIER = 1 << 16,
	PERF_SAMPLE_TRANSACTION = 1 << 17,
	PERF_SAMPLE_REGS_INTR = 1 << 18,
	PERF_SAMPLE_PHYS_ADDR = 1 << 19,
	PERF_SAMPLE_AUX = 1 << 20,
	PERF_SAMPLE_CGROUP = 1 << 21,
	PERF_SAMPLE_DATA_PAGE_SIZE = 1 << 22,
	PERF_SAMPLE_CODE_PAGE_SIZE = 1 << 23,
	PERF_SAMPLE_WEIGHT_STRUCT = 1 << 24,
	PERF_SAMPLE_KNOWN = (1 << 25) - 1,
};

/** Bits of the attr's flags. */
enum {
	PERF_FLAG_SAMPLE_ID_ALL = 1 << 18,
	PERF_FLAG_AUX_OUTPUT = 1U << 31, /* its samples are PEBS records in the trace */
};

/** What a sample id, by which records name their event, stands for. */
struct perf_id {
	uint64_t id;
	uint32_t event; /* index in events */
	/* from ID_INDEX: */
	int32_t machine_pid; /* 0 the host */
	int32_t index;       /* of the AUX queue; -1 unknown */
};

/** One record, and what its trailer (or sample) says of it. */
struct perf_record {
	const uint8_t *data;   /* the 8-byte header and what follows; `size` bytes readable */
	uint64_t file_offset;  /* of the record, or of the COMPRESSED record that holds it */
	uint64_t time;         /* ns of perf's clock; 0 none (synthesized at the start) */
	uint64_t id;           /* sample id; 0 none */
	int32_t pid, tid, cpu; /* -1 unknown */
	int32_t machine_pid;   /* from ID_INDEX; 0 the host */
	uint16_t type, misc, size;
};

/** What follows the header of a record. */
static inline struct bytes perf_record_body(const struct perf_record *record)
{
	return (struct bytes){ record->data + 8, record->size - (size_t)8 };
}

/** Many records: an array of spool.h. */
struct perf_records {
	struct perf_record *items;
	size_t count, room;
};

/** A build id that the recording knows of a file. */
struct perf_build_id {
	uint16_t cpumode; /* of `misc`, as in perf_record.h */
	int32_t pid;      /* -1 host, 0 default guest, otherwise the machine */
	struct build_id id;
	const char *filename;
};

/** The strings of the feature sections; NULL where absent. */
struct perf_features {
	const char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid, *cmdline;
	uint32_t cpus_available, cpus_online;
	uint64_t total_mem_kb;
	uint64_t first_sample_ns, last_sample_ns;
	uint64_t bitmap[4];
	struct bytes payloads[32]; /* as in the file, by number; empty where absent */
};

/** An entry of ID_INDEX. */
struct perf_id_entry {
	uint64_t id;
	int64_t idx, cpu, tid;
	int32_t machine_pid; /* 0 the host */
	int64_t vcpu;        /* -1 none */
};

struct perf_sample;

struct perf_data {
	char *path;        /* as the user gave it */
	char *directory;   /* the recording's directory, NULL for a single file or a pipe */
	char *file_path;   /* of the data file; "-" for a pipe */
	struct bytes file; /* mapped (or spooled) whole; valid until perf_data_close() */
	/* Of the file and, behind it, of those that the recorder's threads wrote beside it, each
	 * from a page of its own on; empty where `file` is in memory. All `file_offset`s count from
	 * the start of the mapping: perf_data_place() tells the file. */
	struct bytes mapping;
	struct {
		struct perf_part {
			uint64_t offset, size;
			uint32_t number;
			char *path;
		} * items;
		size_t count, room;
	} parts; /* the other files, sorted by number */
	bool is_pipe, truncated, is_timeless;
	uint64_t data_offset, data_size;
	struct {
		struct perf_event *items;
		size_t count, room;
	} events;
	size_t id_total;             /* ids of all events */
	struct perf_records records; /* sorted by time, stable */
	struct {
		struct aux_queue *items;
		size_t count, room;
	} queues; /* sorted by index */
	struct {
		struct perf_build_id *items;
		size_t count, room;
	} build_ids;
	struct {
		struct perf_id_entry *items;
		size_t count, room;
	} id_index;
	struct {
		struct perf_vcpu {
			int64_t tid, vcpu;
		} * items;
		size_t count, room;
	} vcpus; /* by ID_INDEX, sorted by tid */
	struct {
		struct perf_id *items;
		size_t count, room;
	} ids; /* sorted by id */
	struct {
		uint64_t *items;
		size_t count, room;
	} aux_index; /* offsets of AUXTRACE records */
	struct perf_features features;
	struct pt_config pt;
	struct bytes auxtrace_info; /* the first such record's body */
	bool have_pt;               /* that record is of Intel PT */
	/* counts of what is not there, for perf_damage.h */
	uint64_t bad_records, bad_features; /* damaged ones; what can be read of them is used */
	uint64_t lost_records;    /* that the kernel or the recorder dropped, by LOST records */
	uint64_t left_out_queues; /* because there are too many */
	uint64_t skipped_bytes;   /* of the data section, because of damage */
	uint64_t bad_offset;
	const char *bad_reason;       /* the first damage, at bad_offset; NULL when there is none */
	struct arena arena, unpacked; /* the latter has what compressed records hold */
};

/**
 * Open a recording for reading.
 *
 * @path   a perf.data file, a directory with `data` in it, or "-" for a pipe on standard input
 * @ret    filled; release with perf_data_close(), also after a failure
 *
 * A cut-short or damaged file is read as far as it makes sense (`truncated`, `bad_reason`).
 * Returns 0, -PTVM_SYSTEM (cannot be read), -PTVM_BAD_INPUT (not perf.data) or -PTVM_NO_MEMORY.
 */
int perf_data_open(const char *path, struct perf_data *ret, struct ptvm_error *error);

/** As perf_data_open() for bytes that are in memory, and stay there until perf_data_close(). */
int perf_data_open_bytes(struct bytes file, struct perf_data *ret, struct ptvm_error *error);

/**
 * Read the trailer of a kernel's record, or the fields of a sample, into `ret`, and set the time,
 * id, thread, CPU and machine of `record` by it. Records in `data->records` have these already.
 * Returns 0, or -PTVM_BAD_INPUT when the record is too short for its event; what is there is used.
 */
int perf_data_explain(const struct perf_data *data, struct perf_record *record,
		      struct perf_sample *ret);

/** The path of the file with the byte at `*offset` of the mapping, which becomes the offset in it.
 */
const char *perf_data_place(const struct perf_data *data, uint64_t *offset);

/** Where a reader of all records in order is. */
struct record_trail {
	const struct perf_data *data;
	struct page_trail file;
	size_t held; /* bytes read since the last call of perf_data_rest() */
};

/** Begin at the first record. `data` must outlive it. */
struct record_trail perf_data_trail(const struct perf_data *data);

/** The reader is at a record of so many bytes. What lies behind it is given back, some megabytes at
 * a time. */
void perf_data_step(struct record_trail *trail, const uint8_t *record, size_t size);

/** Give back the pages of the list of records, and of those that were unpacked. */
void perf_data_rest(const struct perf_data *data);

/** The vCPU that a host thread runs, by ID_INDEX; -1 unknown. */
int64_t perf_data_vcpu(const struct perf_data *data, int32_t tid);

/** Release everything; accepts one that perf_data_open() failed on, or zeroes. */
void perf_data_close(struct perf_data *data);
