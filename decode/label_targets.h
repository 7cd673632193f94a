/* Where a jump label may lead in its other form: as the kernel's table of labels says, or, since
 * that is not always part of what is copied, as far as code tells. The code that such a jump leads
 * to, or that a jump skips which may also be a NOP, begins behind an instruction that does not go
 * on, and nothing else reaches it. */
#pragma once

#include "decode/machine.h"
#include "decode/x86_insn.h"

enum {
	LABEL_TARGETS_MAX = 24,
};

/** Ways that a label may go; a NOP's is the next instruction. */
struct label_targets {
	uint64_t items[LABEL_TARGETS_MAX]; /* the likeliest first */
	unsigned count;
	unsigned back_count; /* items below this index lead back to just behind the label, */
	unsigned dead_count; /* those below this one nothing else reaches; the others lie ahead */
	unsigned looked_at;  /* instructions read to find them */
};

/** Whether an instruction looks like a jump label in either form. */
bool label_targets_is_label(const struct insn *insn);

/** Find the likely targets of what looks like a label, in its function and the part of that which
 * lies elsewhere (.cold). None: it is no label, or its function is not known. */
void label_targets_find(struct machine *machine, const struct insn *label, uint64_t time_ns,
			struct label_targets *ret);
