/* What came of trying patches where packets and code disagree, and which of them to believe. To
 * agree with the next few packets says little, since every address that is told puts the flow
 * right, whatever led there. What counts is how far it is to the next disagreement (a patched site
 * is passed again, by other ways), and that nothing else explains as much. Internal to the flow. */
#pragma once

#include "decode/flow/pt_flow.h"

enum { PATCH_ATTEMPTS = 16 }; /* kept */

/** What there is to say of patches before they are tried. */
struct patch_traits {
	uint32_t unlikely; /* targets that are not the likeliest */
	uint32_t unusual;  /* patches that kernels seldom make */
	uint32_t groups;   /* patches that are about many sites at once */
	bool is_known;     /* the last of them is as a later copy has it */
};

/** Sites in other forms, and what came of it. */
struct patch_attempt {
	struct flow_patches patches;
	struct patch_traits traits;
	uint64_t reach;  /* behind the packet that disagrees next; UINT64_MAX: none in the window */
	uint32_t told;   /* addresses from the disagreement up to there */
	uint32_t met;    /* returns to calls that were followed, as far */
	uint32_t visits; /* to sites that it patches */
	uint32_t odd;    /* branches that programs seldom make */
};

struct patch_attempts {
	struct patch_attempt items[PATCH_ATTEMPTS]; /* the best first */
	unsigned count;
};

/** Keep an attempt if it is one of the best; what was tried before in another way counts once. */
void patch_attempts_keep(struct patch_attempts *list, const struct patch_attempt *attempt);

/** Whether these patches are known to explain all there is. */
bool patch_attempts_explain_all(const struct patch_attempts *list,
				const struct flow_patches *patches);

/**
 * Drop attempts that others are preferred to that explain as much:
 *
 * Labels in a row often lead to the same place, since it takes any of some features to go there.
 * The first is preferred: if it is another that is on, nothing is told that did not run, only what
 * lies between them is left out.
 *
 * A group must be met in more than one place, or it is no more than one of its patches.
 */
void patch_attempts_settle(struct patch_attempts *list);

/** Whether there is an attempt, and the best is a good one. */
bool patch_attempts_are_enough(const struct patch_attempts *list);

/** Drop from the best attempt, of which there is one, what others that explain as much do not have
 * behind its first `known` patches. */
void patch_attempts_agree(struct patch_attempts *list, uint32_t known);
