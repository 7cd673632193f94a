/* The time stamps of a queue, one after the other: what each shows, in whose time, and what the
 * crystal counted by then. Reads packets only, and most of them no further than their first byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "correlate/crystal.h"
#include "decode/base/bytes.h"
#include "decode/pt/pt_cursor.h"

enum tsc_kind {
	TSC_PACKET, /* a TSC packet */
	TSC_PEBS,   /* the time stamp in a PEBS record: all 64 bits, or 32 of them */
	TSC_BREAK,  /* no time stamp: data was lost at `position`, or the queue ends there */
};

struct tsc_event {
	enum tsc_kind kind;
	uint64_t position; /* of the payload in the stream */
	uint8_t size;      /* of the payload, bytes */
	uint64_t value;
	bool guest;     /* in VMX non-root operation */
	bool mode_told; /* by the PSB+ itself, not by what came before */
	bool in_psb;    /* of a PSB+; any other TSC may say that clocks had stopped */
	uint64_t vmcs;  /* the current one; PT_NO_VMCS unknown */
	bool have_tma;
	uint16_t fast;
	int64_t count; /* of the crystal, when that is known (have_count) */
	bool have_count;
	bool lost; /* since the former time stamp crystal ticks may have been lost */
};

struct tsc_walk {
	const struct pt_config *config;
	struct pt_cursor cursor;
	struct crystal crystal;
	uint64_t vmcs;
	bool nr, basic_pebs, lost, ended;
	struct bytes mapping; /* of the trace; empty: it is in memory */
	uint64_t held;        /* position: pages from here on may be in memory */
	uint8_t skip[256];    /* size of the packets to step over, by first byte; 0: look closer */
};

/** Begin to walk a queue; `queue` and `config` must outlive the walk. Pages of the trace that lie
 * in `mapping` are given back behind it. */
void tsc_walk_init(struct tsc_walk *walk, const struct aux_queue *queue,
		   const struct pt_config *config, struct bytes mapping);

/** The next time stamp or break. Returns 0, or -PTVM_END after the break that ends the queue. */
int tsc_walk_next(struct tsc_walk *walk, struct tsc_event *ret);
