/* Made-up programs of real x86 instructions, and what each instruction does: the code that a
 * simulated machine runs, generated from a seed. Knows nothing of traces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_kind {
	SIM_PLAIN,
	SIM_COND,          /* jcc, loop, jrcxz */
	SIM_JMP,           /* direct */
	SIM_CALL,          /* direct */
	SIM_JMP_INDIRECT,  /* to a leader of the same function */
	SIM_CALL_INDIRECT, /* to a leaf further on */
	SIM_RET,
	SIM_POP,  /* drops the return address on the stack */
	SIM_INT3, /* a trap to the interrupt handler */
	SIM_IRET,
	SIM_SYSCALL,
	SIM_SYSRET,
	SIM_MOV_CR3,
	SIM_EXITING, /* leaves a guest: hlt, cpuid, vmcall; plain in the host */
	SIM_VMPTRLD,
	SIM_VMRESUME,
	SIM_XBEGIN, /* `target` is where an abort goes */
	SIM_XEND,
	SIM_PTWRITE,
	SIM_LABEL, /* a jump, or a NOP of its size: changes while the program runs */
};

struct sim_insn {
	uint64_t ip, target; /* target of direct branches */
	size_t index;        /* of the target instruction */
	enum sim_kind kind;
	uint8_t size;
	bool leader; /* structured code begins here: an indirect jump may come here */
	bool jumps;  /* a label, as it is now; the bytes are as it was at first */
	bool guard;  /* a conditional branch around recursion: taken when the stack is deep */
};

/** What the functions of a program are for; leaves follow, each calling only later ones. */
enum sim_function {
	SIM_MAIN,      /* never returns; ends in SYSRET when there is user code */
	SIM_HANDLER,   /* of interrupts; ends in IRET */
	SIM_ENTRY,     /* of system calls; ends in SYSRET */
	SIM_RUN,       /* enters guests; in the host only */
	SIM_RECURSIVE, /* calls itself deeply */
	SIM_FIRST_LEAF,
	SIM_LEAVES = 12,
	SIM_NEAR_LEAVES = 8, /* the others lie SIM_FAR_OFFSET or more from the base */
	SIM_FUNCTIONS = SIM_FIRST_LEAF + SIM_LEAVES,
};

enum { SIM_FAR_OFFSET = 0x4000 };

struct sim_code_options {
	uint64_t seed, base;
	uint8_t bits;  /* 64, 32 or 16 */
	bool user;     /* a user program: system calls instead of privileged instructions */
	bool has_user; /* a kernel with user programs */
	bool host;     /* not in a guest */
	bool runs_guests;
	bool tsx, ptwrite;
	bool labels; /* jump labels */
};

/** A program; its bytes are [base, base + size). */
struct sim_code {
	uint64_t base;
	uint8_t bits;
	uint8_t *bytes;
	size_t size, room;
	struct {
		struct sim_insn *items; /* in order of addresses */
		size_t count, room;
	} insns;
	size_t functions[SIM_FUNCTIONS + 1]; /* first instruction of each, and the end */
	size_t vmexit;                       /* in the host: where a VM exit arrives */
};

/** Generate a program; release it with sim_code_free(). Aborts when memory is out. */
void sim_code_make(const struct sim_code_options *options, struct sim_code *ret);

/** The function that holds the instruction. */
unsigned sim_code_function(const struct sim_code *code, size_t insn);

/** Release the program. */
void sim_code_free(struct sim_code *code);
