/* Where a jump label may lead in its other form: as the kernel's table of labels says, or, since
 * that is not always part of what is copied, as far as code tells. The code that such a jump leads
 * to, or that a jump skips which may also be a NOP, begins behind an instruction that does not go
 * on, and nothing else reaches it. */
#pragma once

#include "decode/code/machine.h"
#include "decode/code/x86_insn.h"

enum {
	LABEL_TARGETS_MAX = 24,
	LABEL_PLACES_MAX = 1024, /* of one kind, in a function */
};

/** Ways that a label may go; a NOP's is the next instruction. */
struct label_targets {
	uint64_t items[LABEL_TARGETS_MAX]; /* the likeliest first */
	unsigned count;
	unsigned exact_count; /* items below this index lead back to right behind the label, */
	unsigned back_count;  /* those below this one to a place close to that, */
	unsigned dead_count;  /* those below this one nothing else reaches; the others lie ahead */
	unsigned looked_at;   /* instructions read to find them */
};

struct label_places {
	uint64_t items[LABEL_PLACES_MAX];
	unsigned count;
};

/** What was seen of a function, to find the targets of all of its labels. Internal. */
struct label_scan {
	struct machine *machine;
	uint64_t time_ns;
	uint64_t function;           /* its address; 0: none */
	const char *name;            /* its name */
	struct label_places leaders; /* behind what does not go on */
	struct label_places reached; /* by branches, in order */
	uint64_t cold;               /* where its other part begins; 0 unknown */
	uint64_t beyond;          /* where a jump leads that follows the label; 0: there is none */
	unsigned looked_at, most; /* instructions */
};

/** Whether an instruction looks like a jump label in either form. */
bool label_targets_is_label(const struct insn *insn);

/** Begin without a function. */
void label_scan_init(struct label_scan *scan, struct machine *machine, uint64_t time_ns);

/** Find the likely targets of what looks like a label, in its function and the part of that which
 * lies elsewhere (.cold). None: it is no label, or its function is not known. Labels of the same
 * function, one after the other, take less time. */
void label_scan_find(struct label_scan *scan, const struct insn *label, struct label_targets *ret);

/** The same for a single label. */
void label_targets_find(struct machine *machine, const struct insn *label, uint64_t time_ns,
			struct label_targets *ret);
