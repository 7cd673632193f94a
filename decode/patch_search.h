/* Finds the patches by which packets and code agree again, at one disagreement. Internal to the
 * flow. */
#pragma once

#include "decode/flow_mark.h"
#include "decode/patch_forms.h"

enum {
	PATCH_CANDIDATES = 256,
	PATCH_PLACES = 128,   /* blocks whose disagreements are searched, */
	PATCH_ASKED = 3,      /* so often each, at most, */
	PATCH_ASKED_MAX = 12, /* and so often all together */
};

/** Patches that each explain some disagreement, gathered over a sample. */
struct patch_candidates {
	struct patch_candidate {
		struct flow_patch patch;
		unsigned unlikely; /* as in struct patch_form */
		uint32_t segment;  /* of the flow's log, that it was found in */
		bool is_known;
	} items[PATCH_CANDIDATES];
	unsigned count, asked;
	struct {
		uint64_t ip; /* of the block that disagreed */
		unsigned asked;
	} places[PATCH_PLACES];
	unsigned place_count;
};

/**
 * Packets and code disagree: find the patches by which they agree.
 *
 * Returns true with the flow and its batch back at the mark and the patches in force; or false with
 * the mark set anew: the disagreement stays. The work is bounded for each segment. With
 * `flow->where.candidates` what is found is only added to those.
 */
bool patch_search(struct flow_run *run, struct flow_mark *mark);
