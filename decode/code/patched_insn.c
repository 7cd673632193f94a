#include "decode/code/patched_insn.h"

#include <string.h>

static const uint8_t nop2[] = { 0x66, 0x90 }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };

static struct patched_insn branch(uint64_t site, uint8_t size, uint8_t opcode, uint64_t to)
{
	struct patched_insn ret = { .site = site, .to = to, .size = size };
	uint64_t distance = to - (site + size);

	ret.bytes[0] = opcode;
	memcpy(ret.bytes + 1, &distance, size - 1u);
	return ret;
}

struct patched_insn patched_insn_label(uint64_t site, uint8_t size, uint64_t to)
{
	struct patched_insn ret = { .site = site, .to = to, .size = size };

	if (to != site + size)
		return branch(site, size, size == 2 ? 0xeb : 0xe9, to);
	memcpy(ret.bytes, size == 2 ? nop2 : nop5, size);
	return ret;
}

struct patched_insn patched_insn_call(uint64_t site, uint64_t to)
{
	return branch(site, 5, 0xe8, to);
}
