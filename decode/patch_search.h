/* Finding which instructions have changed, where packets and code disagree. Not for others than
 * pt_flow. */
#pragma once

#include "decode/flow_mark.h"
#include "decode/patch_forms.h"

enum {
	PATCH_IDEAS = 256,
	PATCH_PLACES = 128,   /* whose disagreements are asked about, */
	PATCH_ASKED = 3,      /* so often for each at most */
	PATCH_ASKED_MAX = 12, /* and for all together before they are looked at */
};

/** Patches each of which explains some disagreement. */
struct patch_ideas {
	struct patch_idea {
		struct flow_patch patch;
		unsigned unlikely; /* 0: what code tells speaks for it */
		bool is_known;     /* a later copy has it so */
	} items[PATCH_IDEAS];
	unsigned count, asked;
	struct {
		uint64_t ip; /* of the block that disagreed */
		unsigned asked;
	} places[PATCH_PLACES];
	unsigned place_count;
};

/**
 * Packets and code disagree: find the patches by which they do not.
 *
 * Returns true with the flow and its batch back at the mark and the patches in force; or false with
 * the mark set anew, the disagreement stays. The search is bounded, per segment. A flow whose code
 * wants `ideas` gets those and no patches.
 */
bool patch_search(struct flow_run *run, struct flow_mark *mark);
