/* Instructions per cycle: counts both, and makes the field ipc of a line. Packets tell how many
 * cycles passed until a branch, by coming before the packet that decides it. Only in the lines of
 * such branches are both counts of the same moment, so that others have no IPC (unless
 * --itrace=A asks for an approximation). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/text.h"

struct ipc_count {
	uint64_t insns, cycles;
};

/** Zero-initialise before use. */
struct ipc {
	struct ipc_count total; /* of all that ran; cycles up to the time of what is printed now, */
	uint64_t told_cycles;   /* and up to the last packet, the time of what is printed next */
	bool is_due;  /* cycles were told, and the branch that they lead up to is to come */
	bool in_line; /* the present line is one that has IPC */
	struct ipc_count at_insn, at_branch; /* total at the last such line of each of the two */
};

/**
 * Counts for the present line, since `mark`, which moves to the total. Zeroes if the line has no
 * IPC. Without cycles since then the mark stays, for a later line to count from it.
 */
struct ipc_count ipc_take(const struct ipc *ipc, struct ipc_count *mark);

/** Append the field; nothing unless both counts are above zero. */
void ipc_text(struct text *text, const struct ipc_count *count);
