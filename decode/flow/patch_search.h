/* Finds the patches by which packets and code agree again, at one disagreement. Internal to the
 * flow. */
#pragma once

#include "decode/flow/flow_mark.h"
#include "decode/flow/patch_attempts.h"

enum {
	PATCH_ASKED = 3,         /* times that disagreements of one block are searched, at most, */
	PATCH_ASKED_SEGMENT = 2, /* those of one segment, */
	PATCH_ASKED_MAX = 12,    /* and those of all together, until candidates are cleared */
	PATCH_CANDIDATES = PATCH_ASKED_MAX * PATCH_ATTEMPTS,
};

/** Patches that each explain some disagreement, gathered over a sample. Zero-initialise before use.
 */
struct patch_candidates {
	struct patch_candidate {
		struct flow_patch patch;
		unsigned unlikely; /* as in struct patch_form */
		uint32_t segment;  /* of the flow's log, that it was found in */
		bool is_known;
	} items[PATCH_CANDIDATES];
	unsigned count, asked;
	uint32_t segment;  /* that was asked last, */
	unsigned asked_in; /* so often */
	struct {
		struct patch_place {
			uint64_t ip; /* of the block that disagreed */
			unsigned asked;
		} * items;
		size_t count, room;
	} places; /* since the beginning */
};

/** Forget what was found, and search as often again. */
void patch_candidates_clear(struct patch_candidates *candidates);

/** Free everything; accepts zeroes. */
void patch_candidates_free(struct patch_candidates *candidates);

/**
 * Packets and code disagree: find the patches by which they agree.
 *
 * Returns true with the flow and its batch back at the mark and the patches in force; or false with
 * the mark set anew: the disagreement stays. The work is bounded for each segment. With
 * `flow->where.candidates` what is found is only added to those.
 */
bool patch_search(struct flow_run *run, struct flow_mark *mark);
