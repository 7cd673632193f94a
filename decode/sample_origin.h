/* What led to a sample of another event, by the trace: the calls, and the last branches before it
 * (--itrace=G and L). Whoever follows the trace writes it, and whoever makes the line of the sample
 * reads it, in the layout of a sample that was recorded with them. */
#pragma once

#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/call_stack.h"
#include "decode/last_branches.h"
#include "decode/text.h"

enum {
	/* The time of a sample is that of its end: so many branches, generously, may have come
	 * since the place that it tells, and are not among those that are shown. As perf has it. */
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

/** What was appended. */
struct sample_origin sample_origin_read(struct bytes bytes);
