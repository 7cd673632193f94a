/* What a kernel changes in its code at once: an instruction, or many that go together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/ftrace_table.h"
#include "decode/code/label_key.h"
#include "decode/code/patched_insn.h"
#include "decode/code/tracepoint_table.h"

struct patch_change {
	struct patched_insn insn;
	struct patched_insn also;      /* changed with it; site 0: none */
	struct tracepoint_group group; /* instead of both: many at once, */
	struct label_key key;          /* or the labels of one key, */
	struct ftrace_change ftrace;   /* or calls of a tracer, where functions begin */
};

/** Whether a change is of many instructions at once. */
bool patch_change_is_group(const struct patch_change *change);

/** Whether two changes do the same. */
bool patch_change_is_same(const struct patch_change *a, const struct patch_change *b);

/** Whether it changes the instruction at `site`. */
bool patch_change_has(const struct patch_change *change, uint64_t site);

/** What it makes of the instruction at a site that it has. False: it is there as copied. */
bool patch_change_insn(const struct patch_change *change, uint64_t site, struct patched_insn *ret);

/** The change by which all that a group has is as copied again. */
struct patch_change patch_change_undo(const struct patch_change *group);

/** Call `visit` for each site that it has, as long as that returns true. Returns what the last call
 * returned. */
bool patch_change_visit(const struct patch_change *change,
			bool (*visit)(void *context, uint64_t site), void *context);
