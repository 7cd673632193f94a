/* The other forms that an instruction of a kernel may have been patched to since it was copied: the
 * one in a later copy that differs, else those that kernels make while they run. */
#pragma once

#include "decode/flow/pt_flow.h"

enum {
	PATCH_FORMS_MAX = 32,
	PATCH_IMPROBABLE = 16, /* `unlikely` of a target that other code reaches, too */
};

struct patch_forms {
	struct patch_form {
		struct patch_change change;
		uint8_t unlikely; /* 0: the code around speaks for it; the more, the less likely */
		bool is_known;    /* a later copy has it */
		bool is_usual;    /* a tracepoint that is switched on, or a tracer */
	} items[PATCH_FORMS_MAX]; /* the likeliest first */
	unsigned count;
	unsigned looked_at; /* instructions read to find them */
};

/** Whether it is worth asking patch_forms_find() about an instruction. */
bool patch_forms_may_be(struct machine *machine, const struct insn *insn, uint64_t time_ns);

/** Find the other forms of an instruction; none where there is no reason for any. */
void patch_forms_find(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret);
