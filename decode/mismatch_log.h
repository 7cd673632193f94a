/* Where packets were at odds with the code: what a run of a flow through a sample leaves behind,
 * and what two such runs say of the patch that one of them had and the other had not.
 *
 * A right patch makes disagreements go and brings no others; one that is wrong explains something
 * too, but is contradicted where the code as it was is not. Each place counts once, whichever way
 * it is at odds, and each is another witness. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trail_kind {
	TRAIL_GAP,   /* the flow was lost, */
	TRAIL_BEGIN, /* or found again */
	TRAIL_ODD,   /* a branch that programs seldom make; where they do, they do it again */
};

struct trail_event {
	uint64_t position; /* in the stream of the source */
	uint64_t time;     /* of the host, in ticks */
	uint64_t from, to; /* TRAIL_ODD: of the branch */
	uint32_t source;
	enum trail_kind kind;
};

/** Zero-initialise before use. */
struct patch_trail {
	struct trail_event *items; /* by source, and in the order of the stream */
	size_t count, room;
	uint32_t source; /* of what comes next, in rising order */
	bool is_cut;     /* there was more than fits */
};

enum { TRAIL_MAX = 1 << 17 };

/** Add what happened, but for the source, which is the trail's present one, and TRAIL_BEGIN where
 * it was not lost. */
void patch_trail_note(struct patch_trail *trail, struct trail_event event);

/** Forget all events, to begin again. */
void patch_trail_clear(struct patch_trail *trail);

/** Free the events; accepts zeroes. */
void patch_trail_free(struct patch_trail *trail);

/** How a patch fared where it is in force: in [since, until), 0 and UINT64_MAX where always. */
struct trail_verdict {
	uint64_t since, until;
	uint32_t gone; /* places that are not at odds any more */
	/* places where the flow is lost now and was not, or would be still outside of that time */
	uint32_t against;
	uint32_t odd; /* places where only branches are odd that were not */
};

/**
 * Compare a run without a patch and one with it in force all the time.
 *
 * Code may have changed, and changed back, while it was traced: then the one explains what came
 * before and after, and the other what came between. That is believed where each side has
 * witnesses of its own.
 *
 * @unclear  places that say nothing, since others explain them as well
 *
 * Returns 0, or -PTVM_NO_MEMORY also when one of the trails is cut.
 */
int patch_trail_compare(const struct patch_trail *without, const struct patch_trail *with,
			const struct patch_trail *unclear, struct trail_verdict *ret);

/** Add to `unclear` the places that are not at odds any more. */
void patch_trail_note_gone(const struct patch_trail *without, const struct patch_trail *with,
			   struct patch_trail *unclear);
