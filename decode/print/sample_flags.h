/* What a branch was, in perf's sample flags and words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/text.h"
#include "decode/code/x86_insn.h"

/** As PERF_IP_FLAG_* in perf's tools/perf/util/event.h; the letters are perf's too. */
enum sample_flag {
	SAMPLE_BRANCH = 1 << 0,      /* b */
	SAMPLE_CALL = 1 << 1,        /* c */
	SAMPLE_RETURN = 1 << 2,      /* r */
	SAMPLE_CONDITIONAL = 1 << 3, /* o */
	SAMPLE_SYSCALL = 1 << 4,     /* s */
	SAMPLE_ASYNC = 1 << 5,       /* y */
	SAMPLE_INTERRUPT = 1 << 6,   /* i */
	SAMPLE_TX_ABORT = 1 << 7,    /* A */
	SAMPLE_TRACE_BEGIN = 1 << 8, /* B */
	SAMPLE_TRACE_END = 1 << 9,   /* E */
	SAMPLE_IN_TX = 1 << 10,      /* x */
	SAMPLE_VMENTRY = 1 << 11,    /* g */
	SAMPLE_VMEXIT = 1 << 12,     /* h */
	SAMPLE_IF_CLEAR = 1 << 13,   /* D */
	SAMPLE_IF_TOGGLE = 1 << 14,  /* t */
};

/** The flags of an instruction's branch; 0 for one that is none. */
uint32_t sample_flags_of(enum insn_class class);

/** Append the field `flags` as perf prints it: two spaces, 21 columns, one space. */
void sample_flags_text(struct text *text, uint32_t flags);
