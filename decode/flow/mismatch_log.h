/* Where packets disagreed with the code while a flow went through a sample; and what two such logs
 * tell about a patch that was in force in only one of the runs.
 *
 * A right patch makes mismatches go and brings no new ones. A wrong one explains some, too, but
 * brings mismatches where the code as copied has none. Each place counts once, however many
 * mismatches it has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mismatch_kind {
	MISMATCH_LOST,  /* the flow was lost */
	MISMATCH_FOUND, /* it was found again */
	MISMATCH_ODD,   /* a branch that programs seldom make (odd_branch.h) */
};

struct mismatch {
	uint64_t position; /* in the stream of the source */
	uint64_t time;     /* of the host, in ticks */
	/* MISMATCH_ODD: of the branch; MISMATCH_LOST: `from` is that of the code of a kernel that
	 * is not what the packets tell, 0: something else was the reason */
	uint64_t from, to;
	uint64_t agreed; /* MISMATCH_LOST: where packets agreed with the way last */
	uint32_t source, segment;
	enum mismatch_kind kind;
};

/** Zero-initialise before use. */
struct mismatch_log {
	struct mismatch *items; /* by source, segment, and in the order of the stream */
	size_t count, room;
	uint32_t source, segment; /* of those that are added next, in rising order */
	bool is_cut;              /* some did not fit */
};

enum { MISMATCH_LOG_MAX = 1 << 17 };

/** Add a mismatch of the log's present source; MISMATCH_FOUND is left out where it was not lost. */
void mismatch_log_add(struct mismatch_log *log, struct mismatch event);

/** Whether the flow was lost in a segment. */
bool mismatch_log_is_at_odds(const struct mismatch_log *log, uint32_t segment);

/** How often code of a kernel was not what the packets tell. */
size_t mismatch_log_against(const struct mismatch_log *log);

/** Add what another log has of the present segment. */
void mismatch_log_add_from(struct mismatch_log *log, const struct mismatch_log *other);

/** Forget all, to begin again. */
void mismatch_log_clear(struct mismatch_log *log);

/** Free the entries; accepts zeroes. */
void mismatch_log_free(struct mismatch_log *log);

/** When a patch was in force, and what it does then. */
struct mismatch_verdict {
	uint64_t since, until; /* in [since, until); 0 and UINT64_MAX where always, */
	uint64_t first, last;  /* and surely from here to there */
	uint32_t gone;         /* places that are no longer at odds */
	uint32_t against;      /* places that speak against it: where the flow is lost that was not
				* before, or that it would explain outside of that time */
	uint32_t odd;          /* places with new odd branches only */
};

/**
 * Compare a run without a patch and one with it in force all the time.
 *
 * Code may have been patched, and patched back, while it was traced. Then one of the runs explains
 * what came before and after, and the other what came between; that is believed where there is
 * evidence for both.
 *
 * @unclear  places that do not count, since several patches explain them
 *
 * Returns 0, or -PTVM_NO_MEMORY also when one of the logs is cut.
 */
int mismatch_log_compare(const struct mismatch_log *without, const struct mismatch_log *with,
			 const struct mismatch_log *unclear, struct mismatch_verdict *ret);

/** Add to `unclear` the places that the patch explains. */
void mismatch_log_add_gone(const struct mismatch_log *without, const struct mismatch_log *with,
			   struct mismatch_log *unclear);
