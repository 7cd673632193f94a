/* The fields of a line of `ptvm script`, and the option -F that chooses them. */
#pragma once

#include <stdint.h>

#include "decode/base/error.h"

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

/** The names of all fields, with blanks between. */
extern const char fields_words[];

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
