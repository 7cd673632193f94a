/* What the trace tells about how another event's sample came about: the calls it was in, and the
 * last branches before it (--itrace=G and L). The printer of the trace writes this, and the one of
 * the sample's line reads it, in the layout of a sample that was recorded with them. */
#pragma once

#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/text.h"
#include "decode/print/call_stack.h"
#include "decode/print/last_branches.h"

enum {
	/* A sample's time is taken a little later than its address. So many more branches than
	 * wanted are kept, as perf does, since those in between are not shown. */
	ORIGIN_BRANCHES_SINCE = 1024,
	ORIGIN_BRANCH_BYTES = 24,
};

/** Bits of a branch's flags beside those of last_branches.h: which ends are in a guest. */
#define ORIGIN_FROM_GUEST (UINT64_C(1) << 63)
#define ORIGIN_TO_GUEST (UINT64_C(1) << 62)

/** Goes into the text that it was read from. */
struct sample_origin {
	struct bytes calls;    /* u64 addresses, first to last; empty: nothing is known */
	struct bytes branches; /* of ORIGIN_BRANCH_BYTES: from, to, flags; the last one first */
};

/** What is wanted; 0 nothing. */
struct origin_limits {
	unsigned calls, branches;
};

/**
 * Append what is known at the time of a sample at `ip`; nothing where nothing is known.
 *
 * @stack, @branches  of the sample's thread and side
 */
void sample_origin_add(struct text *text, const struct origin_limits *limits, uint64_t ip,
		       const struct call_stack *stack, const struct last_branches *branches);

/** Read what sample_origin_add() appended; `bytes` are just that, possibly none. */
struct sample_origin sample_origin_read(struct bytes bytes);
