/* Where the processor is: root or non-root, which VMCS and address space, in what mode. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/pt_cursor.h"

/** The low bits of MODE.Exec's payload (SDM "MODE.Exec Packet Definition"). */
enum { PT_EXEC_CS_L = 1, PT_EXEC_CS_D = 2, PT_EXEC_IF = 4 };

struct pt_context {
	bool nr;       /* VMX non-root: a guest runs */
	bool in_tx;    /* in a transaction */
	bool if_clear; /* the interrupt flag is 0 (only known with event trace) */
	uint8_t bits;  /* 16, 32 or 64: width of code */
	uint64_t vmcs; /* payload of the VMCS packet; PT_NO_VMCS unknown or none */
	uint64_t cr3;  /* 0 unknown */
};

static inline struct pt_context pt_context_unknown(void)
{
	return (struct pt_context){ .bits = 64, .vmcs = PT_NO_VMCS };
}

/** Code width of a MODE.Exec payload. */
static inline uint8_t pt_context_bits(uint64_t exec)
{
	if (exec & PT_EXEC_CS_L)
		return 64;
	return exec & PT_EXEC_CS_D ? 32 : 16;
}

/** Take over what a PSB+ group states; what it does not state stays. */
static inline void pt_context_update(struct pt_context *context, const struct pt_psb_state *state)
{
	if (state->have_pip) {
		context->nr = state->nr;
		context->cr3 = state->cr3;
	}
	if (state->have_vmcs)
		context->vmcs = state->vmcs;
	if (state->have_exec) {
		context->bits = pt_context_bits(state->exec);
		context->if_clear = !(state->exec & PT_EXEC_IF);
	}
	if (state->have_tsx)
		context->in_tx = state->in_tx;
}
