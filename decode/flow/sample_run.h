/* Runs through the sample of the trace that patches are learned from, with some of them in force.
 * Where a run differs from another one by a patch only, nothing changes in segments that do not
 * come by what it patches: what those tell is taken from the other run. */
#pragma once

#include "decode/flow/met_sites.h"
#include "decode/flow/mismatch_log.h"
#include "decode/flow/patch_inference.h"
#include "decode/flow/patch_search.h"
#include "decode/flow/sample_segments.h"

/** The sample, and what its runs share. */
struct sample_run {
	struct patch_inference *inference;
	struct sample_segments segments;
	struct met_sites *sites; /* of each segment; see sample_run_settle() */
	uint32_t stamp;          /* the last that was given to one of them */
	uint64_t insns;          /* that may still be followed */
	bool is_settled;         /* `code` knows the patches of the present run */
	struct code code;
	struct pt_flow flow;
	struct flow_batch batch;
};

/** Which of the segments that come by a patch a run goes through. */
enum sample_which {
	SAMPLE_ALL,
	SAMPLE_ONE,    /* `segment` */
	SAMPLE_NEAR,   /* it, and a few of those next to it that the flow was lost in, too */
	SAMPLE_ODDS,   /* the other ones that it was lost in, by `odds` */
	SAMPLE_OTHERS, /* those that it was not lost in */
};

struct sample_pass {
	const struct flow_patches *patches; /* in force */
	const struct mismatch_log *base;    /* what segments tell that the run does not go through;
					     * NULL: it goes through all */
	const struct flow_patch *patch;     /* it goes through those that come by this one, at the
					     * time that this has, */
	enum sample_which which;            /* or some of them */
	uint32_t segment;
	const struct mismatch_log *odds;
	/* What might explain disagreements is added here, and segments are gone through, too, that
	 * `base` is at odds in, until enough was asked; NULL: nothing is. */
	struct patch_candidates *candidates;
	bool is_noting; /* where functions return to, and what code the segments come by */
	size_t most;    /* events; with more, the run need not come to the end */
};

/**
 * Begin with a sample of so many bytes of trace, or with all where there are no more.
 *
 * @insns  that all runs together may follow, about
 * @ret    borrows `inference`; release with sample_run_free(), also after a failure
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int sample_run_init(struct patch_inference *inference, uint64_t bytes, uint64_t insns,
		    struct sample_run *ret);

/** Whether the kernel's code disagrees with packets of segment `index`, without patches. With
 * `is_noting` it is seen where functions return to, up to there. */
bool sample_run_disagrees(struct sample_run *run, size_t index, bool is_noting);

/** The segments are chosen: other runs may begin. Returns 0 or -PTVM_NO_MEMORY. */
int sample_run_settle(struct sample_run *run);

/** Go through the sample. `ret` is another log than those of the pass, and is cleared first. */
void sample_run_pass(struct sample_run *run, const struct sample_pass *pass,
		     struct mismatch_log *ret);

/** Free everything; accepts zeroes. */
void sample_run_free(struct sample_run *run);
