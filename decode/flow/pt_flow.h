/* Packets + code -> what ran: blocks, how each was left, time, context, gaps.
 *
 * The flow of one segment is pulled in batches of small items. Instructions exist only inside of
 * blocks; who wants them walks block->insns. Damage is data: what could not be followed is a gap
 * item, and the flow goes on at the next packet that says where. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/patch_change.h"
#include "decode/flow/block.h"
#include "decode/flow/return_stack.h"
#include "decode/perf/sideband.h"
#include "decode/pt/pt_clock.h"
#include "decode/pt/pt_context.h"
#include "decode/pt/pt_cursor.h"
#include "decode/pt/pt_segment.h"

enum flow_kind {
	/* `block`: its first `count` instructions ran. FLOW_TAKEN: the conditional branch at its
	 * end was taken. */
	FLOW_BLOCK,
	FLOW_TO, /* `value`: the former block's last branch (indirect, return, far) went there; 0:
		  * to code that is left out, and where that leads is what the next one tells */
	FLOW_ASYNC, /* `value`: an interrupt, exception or VM exit went there from where the flow
		       was */
	FLOW_BEGIN, /* `value`: tracing begins there, or is in sync again; FLOW_STATED: by what a
		     * PSB+ states, while nothing begins */
	FLOW_END,   /* tracing ends with the former block's last branch; `value`: its target, 0
		       unknown */
	FLOW_END_ASYNC, /* tracing ends where we were, not by a branch; `value`: where it would go
			   on */
	FLOW_ABORT,     /* the transaction was aborted: the next FLOW_ASYNC goes to its handler */
	FLOW_TIME, /* `value`: host time in TSC ticks from here on; `count`: cycles since the last
		    */
	FLOW_CONTEXT, /* `context` of what follows: for FLOW_TO and FLOW_ASYNC that of the target */
	FLOW_GAP,   /* `count`: enum gap_kind; `value`: position in the stream; a FLOW_AT follows */
	FLOW_AT,    /* `value`: the IP that a gap is about, 0 unknown */
	FLOW_EVENT, /* `count`: enum pt_packet_kind of a packet about something other than flow:
		     * FLOW_VALUE follows with its payload; `value`: the present IP, 0 unknown;
		     * FLOW_TAKEN: the event was told with it */
	FLOW_VALUE,
	FLOW_IP,     /* `value`: an instruction that ran, of which no block is known (`quick`);
		      * FLOW_TAKEN: the FLOW_ASYNC or FLOW_END_ASYNC that follows is from there */
	FLOW_HERE,   /* `value`: where the flow is as the segment begins; it goes on from the former
			one */
	FLOW_SWITCH, /* with `gaps_only`: the thread may be another from here on */
};

enum { FLOW_TAKEN = 1, FLOW_STATED = 2 };

struct flow_item {
	uint8_t kind; /* enum flow_kind */
	uint8_t flags;
	uint16_t extra; /* FLOW_EVENT: the packet's count */
	uint32_t count;
	union {
		struct block *block;
		uint64_t value;
	};
};

/** Why a stretch of the trace could not be followed. */
enum gap_kind {
	GAP_BAD_PACKET,
	GAP_NO_CODE,
	GAP_MISMATCH, /* packets and code disagree */
	GAP_OVERFLOW,
	GAP_LOST, /* the recorder lost data */
	GAP_LOOP, /* code that never ends and needs no packet */
	GAP_NO_MEMORY,
	GAP_THUNK, /* no code, but it is known where it led: the flow goes on (flow_thunk.h,
		      ftrace_table.h) */
	GAP_KINDS,
};

/** perf's words for a kind of gap. */
const char *gap_text(enum gap_kind kind);

/** perf's number for a kind of gap. */
unsigned gap_code(enum gap_kind kind);

enum {
	FLOW_BATCH = 8192,
	FLOW_MARGIN = 2560, /* items that one packet may add */
	FLOW_CONTEXTS = 512,
};

struct flow_batch {
	struct flow_item items[FLOW_BATCH];
	uint32_t count;
	uint32_t room; /* items it may have, more than FLOW_MARGIN and at most FLOW_BATCH */
	/* of FLOW_CONTEXT items, whose value is the index here */
	struct pt_context contexts[FLOW_CONTEXTS];
	uint32_t context_count;
};

struct patch_inference;
struct return_sites;
struct patch_candidates;
struct mismatch_log;
struct met_sites;
struct module_doubts;

/** Where the flow finds code: shared read-only knowledge, and its thread's own cache. */
struct flow_code {
	struct code *code;
	const struct switch_entry *switches; /* of the queue's CPU, in order of time */
	size_t switch_count;
	int32_t pid; /* of a per-thread queue; -1: by the switches */
	/* For kernel code that was patched; see flow_patch.h. */
	struct patch_inference *inference;   /* of all queues; NULL: none */
	struct patch_candidates *candidates; /* where what may explain a mismatch is gathered;
					      * NULL: it is patched */
	struct module_doubts *doubts;        /* for modules that were replaced; NULL: none are */
	struct mismatch_log *log;            /* where mismatches are noted; NULL: nowhere */
	struct met_sites *sites;             /* where, with `gaps_only`, is noted what code the flow
					      * comes by; NULL: nowhere */
	struct return_sites *returns;        /* where returns are noted; NULL: nowhere */
};

enum { FLOW_PATCHES = 64, FLOW_THUNKS = 32 };

/** Code found patched since it was copied (flow_patch.h), in order of time. */
struct flow_patches {
	uint32_t count;
	const struct code *code; /* that knows their sites */
	uint64_t work;           /* instructions that may still be followed in search of more */
	struct flow_patch {
		const struct machine *machine;
		struct patch_change change;
		uint32_t from;         /* in force once packets told so many addresses, */
		uint64_t since, until; /* and at times in [since, until) */
	} items[FLOW_PATCHES];         /* the last, see flow_copy() */
};

/** Whether no more patches are looked for, as hardly any would fit: patch_inference keeps room for
 * one to try. */
static inline bool flow_patches_are_full(const struct flow_patches *patches)
{
	return patches->count >= FLOW_PATCHES - 1;
}

/** Modules that may have been replaced since they were copied (replaced_module.h). */
struct replaced_modules {
	bool is_asked; /* what all queues say of them is in force */
	bool any;      /* was replaced, by that */
	struct {
		struct machine *machine;
		const char *name; /* NULL: none */
	} doubt;                  /* one that may have been */
};

enum flow_state {
	FLOW_LOST,      /* not in sync: at the next IP packet */
	FLOW_DISABLED,  /* packets are off until TIP.PGE */
	FLOW_RUNNING,   /* at `ip`, in `block` if it has been looked up */
	FLOW_AT_RETURN, /* FLOW_TRIES_RETURN: behind `block`, whose return goes to no known call */
	FLOW_DONE,
};

/** Whether a flow is a copy of another, to try something out: nothing is noted for others then. */
enum flow_trial {
	FLOW_NO_TRIAL,
	FLOW_TRIES_PATCHES, /* patch_search.h: blocks do not know of them, and links are not used */
	FLOW_TRIES_RETURN,  /* flow_guess.h: it stops where a return goes to no known call */
};

/** A call from before a gap that what is not known returns to: found ahead of time while the flow
 * is lost, and taken when the flow comes to the packet with the return (flow_way_back.h). */
struct flow_way_back {
	uint64_t ip;       /* where the call returns to; 0: none was found */
	uint64_t position; /* behind the TNT packet that has the return */
	uint32_t count;    /* branches left in the packet */
	uint32_t popped;   /* doubted calls that are then no longer open */
};

enum { FLOW_ANNOUNCED = 4 }; /* events that one FUP can belong to */

/** What packets have announced about those that follow (flow_packet.c). */
struct flow_announced {
	bool at_fup;       /* a FUP said where an event happened; its TIP or TIP.PGD comes next */
	bool fup_is_plain; /* the next FUP belongs to an event that does not change the flow */
	bool aborting;     /* the next FUP belongs to the abort of a transaction */
	bool overflowed;   /* between OVF and the packet that says where */
	bool lacks_ip;     /* behind a loss the last IP is not known; only while FLOW_LOST */
	struct pt_packet events[FLOW_ANNOUNCED]; /* that the next FUP belongs to */
	uint32_t event_count;
};

/** What was learned about code. It stays when the flow goes back to a mark. */
struct flow_learned {
	bool met_kernel;  /* patch_inference_begin() was called */
	bool is_informed; /* `patches` has what patch_inference found */
	struct replaced_modules modules;
};

struct pt_flow {
	const struct pt_config *config;
	struct pt_segment segment;
	struct flow_code where;
	uint8_t quick;  /* --itrace=q: 1: code is not looked at, only addresses in packets are told;
			 * 2: only what PSB+ groups state */
	bool gaps_only; /* no items about blocks and times are wanted, only about gaps */
	enum flow_trial trial;
	/* Where it is. */
	struct pt_cursor cursor;
	struct pt_clock clock;
	struct pt_context context;
	struct pt_context next_context; /* as of the next TIP, by PIP and MODE.Exec */
	struct flow_announced announced;
	enum flow_state state;
	struct block *block;
	uint64_t ip;
	uint64_t tnt; /* branches not yet followed, the next in bit tnt_count - 1 */
	uint32_t tnt_count;
	uint32_t idle_blocks;          /* followed since the last packet */
	const struct block *idle_mark; /* one of them */
	uint32_t idle_items;           /* in the batch before them */
	uint64_t told_ip;              /* last IP before the present packet */
	struct return_stack calls;
	struct flow_way_back way_back;
	uint64_t thunks[FLOW_THUNKS]; /* found by flow_thunk.h, some of them */
	/* So far. */
	uint64_t insns;     /* that were followed */
	uint64_t events;    /* that tell of what ran, as PSB and CBR do not */
	uint64_t cycles;    /* by CYC packets, or (flow_cycles.h) by time */
	uint32_t addresses; /* told by packets; each PSB counts as one */
	uint32_t psbs;
	uint32_t returns_met; /* compressed returns to a call that was followed */
	uint32_t ways_found;  /* returns of calls that were not known (flow_guess.h) */
	uint32_t gaps;
	uint32_t disagreements; /* of packets with the code of kernels, which stayed */
	uint32_t odd_branches;  /* of a trial: branches that programs seldom make */
	struct {
		uint64_t since;  /* host TSC; 0: nothing is counted yet */
		uint64_t before; /* cycles at that time */
	} by_time;
	struct {
		uint64_t time, cycles;
	} told; /* by the last FLOW_TIME */
	/* Disagreements of packets and code. */
	bool disagrees;          /* at the present packet */
	uint64_t agreed;         /* where packets last told what the code says; for the log */
	uint64_t near;           /* position of one that the flow was taken back from */
	struct block *gap_block; /* that the last gap was in; only valid until code is forgotten */
	uint64_t return_steps;   /* that may still be tried in search of ways back, */
	uint64_t caller_steps;   /* and among all callers of functions */
	uint64_t int3_steps;     /* instructions to read in search of those that INT3s stood for */
	/* How often a patch was met whose index is at least `watched`; those with the same count of
	 * `addresses`, the last of which is `last`, are one. */
	struct {
		uint32_t watched, count, last;
	} patch_visits;
	struct flow_learned learned;
	struct flow_patches patches; /* the last, see flow_copy() */
};

/**
 * Begin with a segment (copied). With `gaps_only` no FLOW_BLOCK, FLOW_TO and such are added, and
 * FLOW_TIME only before a gap or FLOW_SWITCH. `config` and what `where` points to must outlive the
 * flow.
 */
void pt_flow_init(struct pt_flow *flow, const struct pt_segment *segment,
		  const struct pt_config *config, const struct flow_code *where, bool gaps_only);

/**
 * Fill a batch from empty. Returns 0, or -PTVM_END when the segment has ended with what is in it.
 */
int pt_flow_run(struct pt_flow *flow, struct flow_batch *batch);
