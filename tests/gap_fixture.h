/* A flow in code that calls what is not known: for tests of the ways back from there.
 *
 * 1000: call 9000, which is not known. 1005: call *rax. 1007: jne 1005; jmp *rax.
 * 1010: call 9000. 1015: call 1040; jne 101f, where no code is that bits lead through; jmp 1020.
 * 1020: call 1040; jmp 1020. 1030: call 1040; ret. 1040: ret */
#pragma once

#include "decode/flow/patch_inference.h"
#include "tests/flow_fixture.h"

struct gap_fixture {
	struct flow_fixture f;
	struct patch_inference inference; /* freed at the end of gap_fixture_follow() */
	struct pt_offsets offsets;
};

enum { GAP_ROUNDS = 8 };

/** The code, and no trace. Release with flow_fixture_deinit(). */
void gap_fixture_init(struct gap_fixture *fixture);

/** Append a TIP. */
void gap_fixture_tip(struct gap_fixture *fixture, uint64_t ip);

/** Append a TNT, the last of `bits` is the newest branch. */
void gap_fixture_tnt(struct gap_fixture *fixture, unsigned bits, unsigned count);

/** Append so many returns. */
void gap_fixture_return(struct gap_fixture *fixture, unsigned count);

/** Append that the function at 1040 is called from 1005 GAP_ROUNDS times, and once more. */
void gap_fixture_go_round(struct gap_fixture *fixture);

/** Follow what the trace has from `ip`, to the end. */
void gap_fixture_follow(struct gap_fixture *fixture, uint64_t ip);

/** How often the flow has an item of this kind and value. */
unsigned gap_fixture_count(const struct gap_fixture *fixture, enum flow_kind kind, uint64_t value);
