#include "decode/x86_common.h"

#include "decode/base/bytes.h"

/* What follows the opcode. The numbers of bytes hold without an operand size prefix (66), with
 * which those with 4 bytes are not read. */
enum form {
	OTHER, /* not common, or valid for some operands only */
	NONE = 1,
	WITH_MODRM = 2,
	WITH_1 = 4, /* byte of immediate or displacement */
	WITH_4 = 8,
	BRANCH = 16, /* relative */
	INDIRECT = 32,
	MODRM = NONE | WITH_MODRM,
	IMM1 = NONE | WITH_1,
	IMM4 = NONE | WITH_4,
	MODRM_IMM1 = MODRM | WITH_1,
	MODRM_IMM4 = MODRM | WITH_4,
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
	[0xc3] = NONE,                /* ret */
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

/* Bytes of MODRM, SIB and displacement (SDM vol. 2, tables 2-2 and 2-3). */
static unsigned modrm_size(const uint8_t *p)
{
	unsigned mode = p[0] >> 6, rm = p[0] & 7;
	bool sib = mode != 3 && rm == 4;
	bool absolute = mode == 0 && (rm == 5 || (sib && (p[1] & 7) == 5));

	return 1 + sib + (mode == 1 ? 1 : mode == 2 || absolute ? 4 : 0);
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

bool x86_common_read(const uint8_t *bytes, size_t size, uint64_t ip, struct insn *ret)
{
	const uint8_t *p = bytes, *opcode;
	bool prefix, rex, wide;
	unsigned form;

	if (size < INSN_MAX_SIZE)
		return false;
	prefix = *p >= 0x64 && *p <= 0x66; /* fs, gs, operand size */
	p += prefix;
	rex = *p >> 4 == 4;
	p += rex;
	opcode = p;
	if (*p == 0x0f)
		form = two_bytes[*++p];
	else
		form = one_byte[*p] ? one_byte[*p] : form_by_modrm(*p, p[1]);
	p++;
	if (!form || (prefix && form & (WITH_4 | BRANCH | INDIRECT)))
		return false;
	if ((prefix || rex) && (form & BRANCH || *opcode == 0xc3))
		return false;
	wide = rex && opcode[-1] & 8 && *opcode >> 3 == 0xb8 >> 3; /* mov of 8 bytes with REX.W */
	if (form & WITH_MODRM)
		p += modrm_size(p);
	p += (form & WITH_1 ? 1 : 0) + (form & WITH_4 ? 4 : 0) + (wide ? 4 : 0);
	*ret = (struct insn){ .ip = ip, .bytes = bytes, .length = (uint8_t)(p - bytes) };
	if (form & (BRANCH | INDIRECT) || *opcode == 0xc3)
		ret->class = (uint8_t)class_of(opcode);
	if (form & BRANCH)
		ret->target =
			insn_next(ret) +
			(uint64_t)(form & WITH_1 ? (int8_t)p[-1] : (int32_t)load_le(p - 4, 4));
	return true;
}
