/* What the records of a recording say: a struct for each type. All reads are bounded by the record:
 * strings end in it, arrays fit in it. Pointers are to bytes of the record, and live as long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/perf/build_id.h"
#include "decode/perf/perf_data.h"

/** Bits of `misc`. */
enum {
	PERF_MISC_CPUMODE = 7,
	PERF_CPUMODE_KERNEL = 1,
	PERF_CPUMODE_USER = 2,
	PERF_CPUMODE_GUEST_KERNEL = 4,
	PERF_CPUMODE_GUEST_USER = 5,
	PERF_MISC_MMAP_DATA = 1 << 13,      /* MMAP: not executable */
	PERF_MISC_EXEC = 1 << 13,           /* COMM: because of exec */
	PERF_MISC_SWITCH_OUT = 1 << 13,     /* SWITCH: the thread leaves the CPU */
	PERF_MISC_MMAP_BUILD_ID = 1 << 14,  /* MMAP2: a build id in place of the inode */
	PERF_MISC_SWITCH_PREEMPT = 1 << 14, /* SWITCH out: preempted */
};

/** MMAP and MMAP2. */
struct perf_mmap {
	int32_t pid, tid;
	uint64_t start, size, page_offset;
	uint32_t protection;   /* PROT_EXEC and such; of MMAP PROT_EXEC only */
	uint32_t flags;        /* MMAP2 only */
	uint32_t major, minor; /* of the device; MMAP2 without build id */
	uint64_t inode, generation;
	struct build_id build_id;
	const char *filename;
};

struct perf_comm {
	int32_t pid, tid;
	bool is_exec;
	const char *name;
};

/** FORK and EXIT. */
struct perf_task {
	int32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

/** SWITCH and SWITCH_CPU_WIDE; the thread that switches is the record's pid and tid. */
struct perf_switch {
	bool is_out, is_preempt;
	int32_t other_pid,
		other_tid; /* of CPU_WIDE: who comes next, or who was there before; else -1 */
};

/** Bits of an AUX record's flags. */
enum {
	PERF_AUX_TRUNCATED = 1, /* data was lost after it */
	PERF_AUX_OVERWRITE = 2, /* snapshot */
	PERF_AUX_PARTIAL = 4,   /* it has holes: tracing was off in VMX operation (kvm) */
	PERF_AUX_COLLISION = 8,
};

struct perf_aux {
	uint64_t offset, size, flags;
};

struct perf_lost {
	uint64_t id, count;
};

struct perf_ksymbol {
	uint64_t address;
	uint32_t size;
	uint16_t type, flags; /* type 1 BPF, 2 out of line; flags bit 0 unregister */
	const char *name;
};

struct perf_bpf_event {
	uint16_t type, flags; /* type 1 load, 2 unload */
	uint32_t id;
	uint8_t tag[8];
};

struct perf_text_poke {
	uint64_t address;
	uint32_t old_size, new_size; /* bytes; 0: new text, or text removed */
	const uint8_t *old_bytes, *new_bytes;
};

/*
 * Each fills `ret` and returns 0, or -PTVM_BAD_INPUT for a record that is too short for its type or
 * whose text does not end in it. The caller has looked at the record's type.
 */

/** Read an MMAP or MMAP2. */
int perf_mmap_read(const struct perf_record *record, struct perf_mmap *ret);
/** Read a COMM. */
int perf_comm_read(const struct perf_record *record, struct perf_comm *ret);
/** Read a FORK or EXIT. */
int perf_task_read(const struct perf_record *record, struct perf_task *ret);
/** Read a SWITCH or SWITCH_CPU_WIDE. */
int perf_switch_read(const struct perf_record *record, struct perf_switch *ret);
/** Read the thread that an ITRACE_START or a NAMESPACES is about: the one that ran when the trace
 * began, or the one that has the namespaces. */
int perf_thread_read(const struct perf_record *record, int32_t *ret_pid, int32_t *ret_tid);
/** Read an AUX. */
int perf_aux_read(const struct perf_record *record, struct perf_aux *ret);
/** Read a LOST. */
int perf_lost_read(const struct perf_record *record, struct perf_lost *ret);
/** Read the count of LOST_SAMPLES. */
int perf_lost_samples_read(const struct perf_record *record, uint64_t *ret);
/** Read a KSYMBOL. */
int perf_ksymbol_read(const struct perf_record *record, struct perf_ksymbol *ret);
/** Read a BPF_EVENT. */
int perf_bpf_event_read(const struct perf_record *record, struct perf_bpf_event *ret);
/** Read a TEXT_POKE. */
int perf_text_poke_read(const struct perf_record *record, struct perf_text_poke *ret);

/**
 * Read entry `index` of a THREAD_MAP. The name is a copy, as in the record it may fill its field of
 * 16 bytes without a NUL. Returns 0, or -PTVM_END past the last entry.
 */
int perf_thread_map_entry(const struct perf_record *record, uint64_t index, int32_t *ret_tid,
			  char ret_name[17]);
