/* An instruction of a kernel that is another than in the copy of its code. */
#pragma once

#include <stdint.h>

#include "decode/code/x86_insn.h"

struct patched_insn {
	uint64_t site;                      /* its address */
	uint64_t to;                        /* where it leads; 0: it is as copied again */
	uint8_t bytes[INSN_MAX_SIZE], size; /* of the instruction */
};

/** A jump label of `size` bytes, 2 or 5: a jump, or a NOP if `to` is what follows it. */
struct patched_insn patched_insn_label(uint64_t site, uint8_t size, uint64_t to);

/** A direct call, of 5 bytes. */
struct patched_insn patched_insn_call(uint64_t site, uint64_t to);
