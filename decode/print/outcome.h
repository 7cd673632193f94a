/* What came of a segment, to be told at the end. It goes with the last of its lines, since what is
 * decoded ahead of the lines that are wanted is nobody's business. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/flow/pt_flow.h"

struct outcome {
	struct outcome *next; /* of a list in no order */
	uint64_t gaps[GAP_KINDS];
	uint64_t insns, events, addresses, psbs; /* as in the flow */
	uint64_t corrections;                    /* times held back from running backwards */
	uint64_t translated;                     /* TSCs of guests that are not the host's */
	bool left_out;                           /* the options left lines out */
	bool is_full;                            /* there may be more patches than fit in a flow */
	uint32_t patch_count;
	struct flow_patch patches[]; /* in force */
};

/** Add an outcome to a list, whose first one then counts for all. It is freed if others have all
 * its patches, so that a list does not grow with the number of segments. */
void outcome_list_add(struct outcome **list, struct outcome *outcome);
