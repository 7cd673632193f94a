/* How an instruction of a kernel may read that was changed after its code was copied: as in a later
 * copy, where there is one that differs; otherwise by what kernels change while they run. */
#pragma once

#include "decode/pt_flow.h"

enum {
	PATCH_OPTIONS_MAX = 24,
	PATCH_IMPROBABLE = 16, /* targets that others reach too; those that lead nowhere: 1 each */
};

struct patch_options {
	struct patch_option {
		uint64_t to;
		uint8_t bytes[INSN_MAX_SIZE];
		uint8_t size;
		uint8_t unlikely;   /* 0: what code tells speaks for it */
		bool is_known;      /* a later copy has it so */
	} items[PATCH_OPTIONS_MAX]; /* the likeliest first */
	unsigned count;
	unsigned looked_at; /* instructions, what it cost */
};

/** Whether it is worth asking patch_options_find() about an instruction. */
bool patch_options_may_be(struct machine *machine, const struct insn *insn, uint64_t time_ns);

/** Find how an instruction may read otherwise; none: there is no reason why it should. */
void patch_options_find(struct machine *machine, const struct insn *insn, uint64_t time_ns,
			struct patch_options *ret);
