/* The length of an x86 instruction, and what it does to the flow (SDM vol. 3, "Intel Processor
 * Trace", section "Change of Flow Instruction (COFI) Tracing"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_class {
	INSN_PLAIN,
	INSN_UD, /* ud0, ud1, ud2: never completes, its exception has a FUP */
	/* near, direct: no packet; the block goes on at the target */
	INSN_JMP,
	INSN_CALL,
	/* one TNT bit */
	INSN_JCC, /* with loop and jcxz */
	/* a TIP, or for a return a TNT bit */
	INSN_RET,
	INSN_JMP_INDIRECT,
	INSN_CALL_INDIRECT,
	/* far transfers: a TIP, or TIP.PGD */
	INSN_FAR_JMP,
	INSN_FAR_CALL,
	INSN_FAR_RET,
	INSN_INT,
	INSN_IRET,
	INSN_SYSCALL,
	INSN_SYSRET,
	INSN_VMENTRY, /* falls through where the entry fails */
};

enum { INSN_MAX_SIZE = 15 };

struct insn {
	uint64_t ip;
	uint64_t target;      /* of a direct branch, also a conditional one */
	const uint8_t *bytes; /* in the image */
	uint8_t length;
	uint8_t class;    /* enum insn_class */
	bool stops_trace; /* wrmsr, mov cr3: tracing may end with it and no other packet */
};

/**
 * Decode one instruction.
 *
 * @bytes  code; borrowed, and kept in `ret`
 * @size   readable bytes
 * @ip     its address
 * @bits   16, 32 or 64
 *
 * Returns 0; -PTVM_END when more bytes are needed; or -PTVM_BAD_INPUT when it is no instruction.
 */
int insn_read(const uint8_t *bytes, size_t size, uint64_t ip, unsigned bits, struct insn *ret);

/** The same by the disassembler alone, which insn_read() asks when an instruction is not common. */
int insn_disassemble(const uint8_t *bytes, size_t size, uint64_t ip, unsigned bits,
		     struct insn *ret);

/** Whether the instruction can make the flow go elsewhere than behind it. */
static inline bool insn_is_branch(const struct insn *insn)
{
	return insn->class > INSN_UD;
}

/** Where the instruction after this one is. */
static inline uint64_t insn_next(const struct insn *insn)
{
	return insn->ip + insn->length;
}
