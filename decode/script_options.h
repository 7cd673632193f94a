/* What `ptvm script` is asked to print: fields, kinds of events, selections. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/base/number_ranges.h"
#include "decode/sample_origin.h"

/** Fields of a line, as perf script -F names them, and ours. */
enum field {
	FIELD_COMM = 1 << 0,
	FIELD_TID = 1 << 1,
	FIELD_PID = 1 << 2,
	FIELD_CPU = 1 << 3,
	FIELD_TIME = 1 << 4,
	FIELD_EVENT = 1 << 5,
	FIELD_PERIOD = 1 << 6,
	FIELD_IP = 1 << 7,
	FIELD_SYM = 1 << 8,
	FIELD_SYMOFF = 1 << 9,
	FIELD_DSO = 1 << 10,
	FIELD_ADDR = 1 << 11,
	FIELD_FLAGS = 1 << 12,
	FIELD_INSN = 1 << 13,
	FIELD_INSNLEN = 1 << 14,
	FIELD_IPC = 1 << 15,
	FIELD_MACHINE_PID = 1 << 16,
	FIELD_VCPU = 1 << 17,
	FIELD_SYNTH = 1 << 18,
	FIELD_VMCS = 1 << 19,       /* as perf prints VMCS packets: hexadecimal */
	FIELD_NR = 1 << 20,         /* `host` or `guest` */
	FIELD_CALLINDENT = 1 << 21, /* call-trace: symbol indented by depth */
	FIELD_DISASM = 1 << 22,     /* the instruction as text */
	FIELD_TRACE = 1 << 23,      /* what the sample of a tracepoint says */
	FIELD_BRSTACK = 1 << 24,    /* last branches */
};

/** Kinds of events, each with fields of its own. */
enum event_kind {
	EVENT_OF_TRACE, /* made of the trace */
	EVENT_HARDWARE,
	EVENT_SOFTWARE,
	EVENT_TRACEPOINT,
	EVENT_RAW,
	EVENT_BREAKPOINT,
	EVENT_OTHER, /* of a PMU that the kernel numbers */
	EVENT_KINDS,
};

/** Kinds of events to make of a trace, as perf's --itrace names them. */
struct itrace {
	/* branches are all branches, unless calls or returns are set: then only these */
	bool instructions, branches, calls, returns, errors, transactions, ptwrites, power,
		interrupts;
	bool approximate_ipc; /* A */
	bool timeless;        /* Z: take no time from the trace */
	unsigned quick;       /* number of q */
	enum { PERIOD_INSNS, PERIOD_TICKS, PERIOD_NS } period_unit;
	uint64_t period;              /* 0 with PERIOD_NS: every instruction; 0 of no other unit */
	uint64_t skip;                /* s: events not to print at first */
	unsigned chain;               /* g: entries of call chains at most; 0: none */
	unsigned last_branches;       /* l: entries at most; 0: none */
	struct origin_limits samples; /* G, L: the same for samples of other events */
	bool error_overflow, error_lost; /* print these errors too; false with e-o and e-l */
};

enum { TIME_RANGES_MAX = 16 };

/** Times in ns of perf's clock; both ends included. */
struct time_ranges {
	struct time_range {
		uint64_t from, to;
	} items[TIME_RANGES_MAX];
	unsigned count; /* 0: all */
};

/** perf script's default, cxwpIe, for no --itrace or one without letters. */
void itrace_default(struct itrace *ret);

/**
 * Parse the argument of --itrace: letters with their numbers and flags (i100us, e-o-l, qq); the
 * default where there are none. Letters of other hardware than Intel PT (f, m, M, t, a) and perf's
 * debug log (d) are accepted and mean nothing.
 *
 * @itrace  in: what former arguments asked for, or zeroes; out: that and this. Only the period is
 *          that of the last. Unchanged after a failure
 *
 * Returns 0, or -PTVM_BAD_USAGE: an unknown letter, or o, which ptvm does not have.
 */
int itrace_add(const char *text, struct itrace *itrace, struct ptvm_error *error);

/**
 * Parse the argument of -F: a list replaces `fields`, with + and - it changes them. A leading
 * `hw:`, `sw:`, `trace:`, `raw:`, `break:` or `synth:` says which kind of events it is for (the
 * first and the last also those of the trace); for others it is checked and changes nothing. Where
 * no list follows, samples of that kind have no fields, and are left out.
 *
 * @fields  of `kind`; in: the default; out: the result
 *
 * Returns 0 or -PTVM_BAD_USAGE with the word that is wrong.
 */
int fields_parse(const char *text, enum event_kind kind, uint32_t *fields,
		 struct ptvm_error *error);

/** Whether a time is in the ranges, or there are none. */
bool time_ranges_have(const struct time_ranges *ranges, uint64_t time_ns);

/**
 * Parse the argument of --time: START,STOP with either missing, several separated by spaces, or
 * percentages (10%, 10%/2, 0%-15%, several of the last two separated by commas); seconds.fraction.
 * Times rise and do not overlap; parts may.
 *
 * @first, @last  ns of the first and last event of the recording, for percentages; untrusted
 *
 * Returns 0, or -PTVM_BAD_USAGE.
 */
int time_ranges_parse(const char *text, uint64_t first, uint64_t last, struct time_ranges *ret,
		      struct ptvm_error *error);

/** Whether the text needs @first and @last. */
bool time_ranges_have_percent(const char *text);
