/* TSC offsets that were read from KVM while recording: `data.ptvm.json` beside the data file, whose
 * layout is in docs/recording-format.md. */
#pragma once

#include "correlate/tsc_offsets.h"
#include "decode/base/arena.h"
#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/pt/time_conv.h"

enum { OFFSETS_RECORDED_BYTES = 64 << 20 }; /* of the file; a larger one is refused */

/** What KVM said of one vCPU at one time. */
struct offset_recorded {
	int32_t pid, tid; /* of the machine's process, of the vCPU's thread */
	int64_t vcpu;
	const char *name; /* of the machine, "" unknown */
	uint64_t time_ns; /* of perf's clock; 0 unknown */
	uint64_t offset;  /* 56 bits */
	uint64_t ratio;   /* TSC_RATIO_BITS fraction bits */
	bool have_offset; /* otherwise only the vCPU is known */
};

/** Zero-initialise; offsets_recorded_free() when done. */
struct offsets_recorded {
	struct {
		struct offset_recorded *items;
		size_t count, room;
	} entries;
	struct arena arena;
};

/** Read the text of the file. Returns 0, -PTVM_BAD_INPUT or -PTVM_NO_MEMORY. */
int offsets_recorded_parse(struct bytes text, struct offsets_recorded *ret,
			   struct ptvm_error *error);

/** Read the file at `path`; one that does not exist records nothing. Errors as when parsing. */
int offsets_recorded_load(const char *path, struct offsets_recorded *ret, struct ptvm_error *error);

/** The vCPU of a thread, NULL unknown. */
const struct offset_recorded *offsets_recorded_find(const struct offsets_recorded *recorded,
						    int32_t tid);

/**
 * Use what was recorded for the guest that thread `tid` ran: where it agrees with what the packets
 * show it is exact, where they show nothing or give an estimate it is better, and otherwise the
 * packets are right.
 *
 * @is_only  the thread ran no other guest. A nested one has a VMCS and an offset of its own, and
 * KVM tells the offset of the one that happens to be on: then only what packets confirm counts
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int offsets_recorded_use(const struct offsets_recorded *recorded, int32_t tid, bool is_only,
			 const struct time_conv *conv, int64_t tolerance,
			 struct vmcs_offsets *guest);

/** Release everything. */
void offsets_recorded_free(struct offsets_recorded *recorded);
