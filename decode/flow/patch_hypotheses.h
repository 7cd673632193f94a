/* Patches that may be what a sample of the trace disagrees about, and what is known of each. */
#pragma once

#include "decode/flow/mismatch_log.h"
#include "decode/flow/patch_search.h"

struct patch_hypothesis {
	struct patch_candidate candidate;
	size_t number;                   /* in the order in which they were thought of */
	unsigned times;                  /* that it was found in this round, */
	unsigned own;                    /* and places that it explains in the segment where */
	struct mismatch_verdict verdict; /* when it was last tried in all segments */
	int64_t gain; /* places that it explains, less those against it; 0: it is not good enough */
	unsigned tried;   /* in vain when there were so many lessons, and one */
	bool is_hopeless; /* a rival explains as much, or the check spoke against it */
};

/** Zero-initialise before use. */
struct patch_hypotheses {
	struct patch_hypothesis *items; /* those found most often first, then the likeliest */
	size_t count, room;
};

/** A round begins: count how often each candidate was found in it, and add those that are new. When
 * memory is out some are left out. */
void patch_hypotheses_gather(struct patch_hypotheses *list,
			     const struct patch_candidates *candidates);

/** The one about a patch, or NULL. */
struct patch_hypothesis *patch_hypotheses_find(const struct patch_hypotheses *list,
					       const struct flow_patch *patch);

/** Below 0: more speaks for `a`, by its gain and then by how likely it is. */
int patch_hypothesis_compare(const struct patch_hypothesis *a, const struct patch_hypothesis *b);

/** Free everything; accepts zeroes. */
void patch_hypotheses_free(struct patch_hypotheses *list);
