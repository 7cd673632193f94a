#include "decode/code/x86_common.h"

#include "decode/base/bytes.h"

/* What follows the opcode, and what else there is to look at. The numbers of bytes hold without an
 * operand size prefix (66), with which those with 4 bytes are not read. */
enum form {
	OTHER,         /* not common, or valid for some operands only */
	IMMEDIATE = 7, /* bytes of immediate or displacement of a branch: 0, 1 or 4 */
	WITH_MODRM = 8,
	BRANCH = 16, /* relative */
	INDIRECT = 32,
	RETURN = 64,
	NONE = 128, /* in all that are common */
	MODRM = NONE | WITH_MODRM,
	IMM1 = NONE | 1,
	IMM4 = NONE | 4,
	MODRM_IMM1 = MODRM | 1,
	MODRM_IMM4 = MODRM | 4,
	MODRM_INDIRECT = MODRM | INDIRECT,
	BRANCH1 = IMM1 | BRANCH,
	BRANCH4 = IMM4 | BRANCH,
};

/* add, or, adc, sbb, and, sub, xor, cmp: four with MODRM, two of the accumulator. */
#define ARITHMETIC(opcode)                                                                         \
	[opcode...(opcode) + 3] = MODRM, [(opcode) + 4] = IMM1, [(opcode) + 5] = IMM4

/* Forms of opcodes of one byte (SDM vol. 2, appendix A, table A-2). */
static const uint8_t one_byte[256] = {
	ARITHMETIC(0x00),
	ARITHMETIC(0x08),
	ARITHMETIC(0x10),
	ARITHMETIC(0x18),
	ARITHMETIC(0x20),
	ARITHMETIC(0x28),
	ARITHMETIC(0x30),
	ARITHMETIC(0x38),
	[0x50 ... 0x5f] = NONE, /* push, pop */
	[0x63] = MODRM,         /* movslq */
	[0x68] = IMM4,          /* push */
	[0x69] = MODRM_IMM4,    /* imul */
	[0x6a] = IMM1,
	[0x6b] = MODRM_IMM1,
	[0x70 ... 0x7f] = BRANCH1, /* jcc */
	[0x80] = MODRM_IMM1,       /* arithmetic */
	[0x81] = MODRM_IMM4,
	[0x83] = MODRM_IMM1,
	[0x84 ... 0x8b] = MODRM, /* test, xchg, mov */
	[0x90 ... 0x99] = NONE,  /* nop, xchg, cltq, cqto */
	[0x9c ... 0x9d] = NONE,  /* pushf, popf */
	[0xa8] = IMM1,           /* test */
	[0xa9] = IMM4,
	[0xb0 ... 0xb7] = IMM1,       /* mov */
	[0xb8 ... 0xbf] = IMM4,       /* mov */
	[0xc0 ... 0xc1] = MODRM_IMM1, /* shifts */
	[0xc3] = NONE | RETURN,       /* ret */
	[0xc9] = NONE,                /* leave */
	[0xd0 ... 0xd3] = MODRM,      /* shifts */
	[0xe8 ... 0xe9] = BRANCH4,    /* call, jmp */
	[0xeb] = BRANCH1,
	[0xfa ... 0xfb] = NONE, /* cli, sti */
};

/* Forms of those of two bytes, by the second (table A-3). */
static const uint8_t two_bytes[256] = {
	[0x1f] = MODRM,            /* nop */
	[0x40 ... 0x4f] = MODRM,   /* cmov */
	[0x80 ... 0x8f] = BRANCH4, /* jcc */
	[0x90 ... 0x9f] = MODRM,   /* set */
	[0xa3] = MODRM,            /* bt */
	[0xaf] = MODRM,            /* imul */
	[0xb6 ... 0xb7] = MODRM,   /* movzx */
	[0xbe ... 0xbf] = MODRM,   /* movsx */
};

/* Of those that MODRM tells apart, by its bits 5:3 (table A-6, groups 3 and 5). */
static const uint8_t group_f6[8] = {
	MODRM_IMM1, OTHER, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, /* test; not, neg, mul, div */
};
static const uint8_t group_f7[8] = { MODRM_IMM4, OTHER, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM };
static const uint8_t group_ff[8] = {
	MODRM,          MODRM, MODRM_INDIRECT, OTHER,
	MODRM_INDIRECT, OTHER, MODRM, /* inc, dec, call, jmp, push */
};

/* Opcodes that are common and valid for some values of MODRM only. */
static enum form form_by_modrm(uint8_t opcode, uint8_t modrm)
{
	unsigned reg = modrm >> 3 & 7;

	switch (opcode) {
	case 0x8d: return modrm >> 6 == 3 ? OTHER : MODRM; /* lea */
	case 0xc6: return reg ? OTHER : MODRM_IMM1;        /* mov */
	case 0xc7: return reg ? OTHER : MODRM_IMM4;
	case 0xf6: return group_f6[reg];
	case 0xf7: return group_f7[reg];
	case 0xff: return group_ff[reg];
	default: return OTHER;
	}
}

/* Bytes of MODRM, SIB and displacement, by its bits 7:6 and 2:0 (SDM vol. 2, table 2-2). */
static const uint8_t modrm_sizes[4][8] = {
	{ 1, 1, 1, 1, 2, 5, 1, 1 },
	{ 2, 2, 2, 2, 3, 2, 2, 2 },
	{ 5, 5, 5, 5, 6, 5, 5, 5 },
	{ 1, 1, 1, 1, 1, 1, 1, 1 },
};

static unsigned modrm_size(const uint8_t *p)
{
	bool no_base = (p[0] & 0xc7) == 4 && (p[1] & 7) == 5; /* table 2-3 */

	return modrm_sizes[p[0] >> 6][p[0] & 7] + (no_base ? 4 : 0);
}

static enum insn_class class_of(const uint8_t *opcode)
{
	switch (*opcode) {
	case 0xc3: return INSN_RET;
	case 0xe8: return INSN_CALL;
	case 0xe9:
	case 0xeb: return INSN_JMP;
	case 0xff: return opcode[1] >> 3 & 4 ? INSN_JMP_INDIRECT : INSN_CALL_INDIRECT;
	default: return INSN_JCC;
	}
}

/* Fill in what a branch does; the rest is read. */
static void read_branch(enum form form, const uint8_t *opcode, struct insn *insn)
{
	const uint8_t *end = insn->bytes + insn->length;

	insn->class = (uint8_t)class_of(opcode);
	if (form & BRANCH)
		insn->target = insn_next(insn) + (uint64_t)((form & IMMEDIATE) == 1
								    ? (int8_t)end[-1]
								    : (int32_t)load_le(end - 4, 4));
}

bool x86_common_read(const uint8_t *bytes, size_t size, uint64_t ip, struct insn *ret)
{
	const uint8_t *p = bytes, *opcode;
	bool prefix, rex, is_branch;
	unsigned form;

	if (size < INSN_MAX_SIZE)
		return false;
	prefix = *p >= 0x64 && *p <= 0x66; /* fs, gs, operand size */
	p += prefix;
	rex = *p >> 4 == 4;
	p += rex;
	opcode = p++;
	form = *opcode == 0x0f ? two_bytes[*p++] : one_byte[*opcode];
	if (!form)
		form = form_by_modrm(*opcode, *p);
	is_branch = form & (BRANCH | INDIRECT | RETURN);
	if (!form || (prefix && (is_branch || (form & IMMEDIATE) == 4)))
		return false;
	if (rex && form & (BRANCH | RETURN))
		return false;
	if (form & WITH_MODRM)
		p += modrm_size(p);
	p += form & IMMEDIATE;
	if (rex && opcode[-1] & 8 && *opcode >> 3 == 0xb8 >> 3)
		p += 4; /* mov of 8 bytes with REX.W */
	*ret = (struct insn){ .ip = ip, .bytes = bytes, .length = (uint8_t)(p - bytes) };
	if (is_branch)
		read_branch(form, opcode, ret);
	return true;
}
