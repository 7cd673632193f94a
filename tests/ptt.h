/* A golden case, tests/golden/NAME.ptt: how a trace was made, the code that ran, its packets in the
 * words of `ptvm script -D`, and the flow that a decoder must find. For tests only: a file that
 * breaks the format ends the program with a message.
 *
 * In sections, `#` begins a comment. First settings, one a line:
 *	cpu FAMILY/MODEL	mtc-shift N	ctc-ratio N/D	nonturbo N
 *	no-tsc			noretcomp	event-trace	offset VMCS VALUE
 *	no-branches
 * `code host` and `code guest`: lines of ADDRESS: BYTE...
 * `packets`: a line each. An IP stands behind its IPBytes, 3:0x401000; `bytes HH...` are raw ones,
 *	`lost` cuts the trace where the recorder lost data. `12x` in front of a line repeats it.
 * `dump`: what -D prints, where that is not the lines of `packets`.
 * `flow`: words, in any number of lines; see tests/unit/test_golden.c. `12x` as above. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/text.h"
#include "decode/pt/pt_config.h"
#include "decode/pt/pt_offsets.h"
#include "tests/pt_encode.h"

struct ptt_code {
	uint64_t address;
	uint8_t *bytes;
	size_t size, room;
};

struct ptt {
	const char *path;
	struct pt_config config;
	struct pt_offsets offsets;
	struct {
		struct ptt_code *items;
		size_t count, room;
	} code[2]; /* host, guest */
	struct pt_bytes trace;
	size_t lost[8]; /* positions in the trace where data is missing */
	unsigned lost_count;
	struct text dump, flow; /* as expected, words separated by one space; dump by line */
};

/** Read a case; free with ptt_free(). `path` is borrowed. */
void ptt_read(const char *path, struct ptt *ret);
/** Release all of the case. */
void ptt_free(struct ptt *ptt);
