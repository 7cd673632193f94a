/* Where a jump label that is a NOP may jump to in its other form. The kernel's table of labels is
 * not part of what is copied; but code that is reached by such a jump only begins behind an
 * instruction that does not go on, and what others reach too is the target of other branches. */
#pragma once

#include "decode/machine.h"
#include "decode/x86_insn.h"

enum {
	LABEL_TARGETS_MAX = 32,
};

/**
 * Likely targets, the likeliest first: in the label's function and its .cold part, or behind it
 * where functions are not known.
 *
 * @label  the NOP; those of 2 bytes have near targets only
 * @ret    room for LABEL_TARGETS_MAX
 * @ret_looked_at  instructions, what it cost
 *
 * Returns how many there are.
 */
unsigned label_targets(struct machine *machine, const struct insn *label, uint64_t time_ns,
		       uint64_t *ret, unsigned *ret_looked_at);
