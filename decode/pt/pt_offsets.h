/* TSC offsets of guests, by VMCS: guest = host + offset, modulo 2^56. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PT_OFFSETS_MAX = 64 };

#define PT_TSC_MASK (((uint64_t)1 << 56) - 1)
#define PT_NO_VMCS (((uint64_t)1 << 40) - 1) /* payload of "no current VMCS" */

struct pt_offsets {
	struct pt_offset {
		uint64_t vmcs, offset; /* vmcs: payload of the VMCS packet */
	} items[PT_OFFSETS_MAX];
	unsigned count;
};

/** The offset of a VMCS; false when it is not known. */
bool pt_offsets_find(const struct pt_offsets *offsets, uint64_t vmcs, uint64_t *ret);

/** Remember an offset; a full table forgets the oldest. */
void pt_offsets_set(struct pt_offsets *offsets, uint64_t vmcs, uint64_t offset);
