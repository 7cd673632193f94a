/* TSC offsets that the user knows: --tsc-offset OFFSET[:VMCS[,VMCS...]]. */
#pragma once

#include "correlate/tsc_offsets.h"
#include "decode/base/error.h"

enum { GIVEN_MAX = 256 };

/** Zero-initialise. */
struct offsets_given {
	struct {
		uint64_t vmcs; /* PT_NO_VMCS: those that are not named */
		uint64_t offset;
	} items[GIVEN_MAX];
	unsigned count;
};

/** Parse one option's argument; numbers as in C. Returns 0 or -PTVM_BAD_USAGE. */
int offsets_given_parse(const char *text, struct offsets_given *ret, struct ptvm_error *error);

/** Let what is given take the place of what was found. Returns 0 or -PTVM_NO_MEMORY. */
int offsets_given_use(const struct offsets_given *given, struct tsc_offsets *offsets);
