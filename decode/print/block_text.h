/* The text of a block's instructions that never changes, made once: printing is copying. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/text.h"
#include "decode/flow/block.h"

/** How addresses and instructions are to look. */
struct block_style {
	uint32_t fields; /* enum field, those that belong to an instruction's line */
	bool intel;      /* Intel syntax instead of AT&T */
	/* Begins each line, after what depends on time: period and event; "" for nothing. */
	const char *lead;
};

struct block_text {
	const char *lines; /* of all instructions, one after the other, each with its newline */
	const uint32_t *offsets; /* count + 1 of them, into lines */
	const uint32_t *insns; /* where in each the instruction itself begins, behind its address */
};

/** What an address is called; all unknown where `space` is NULL or `ip` is 0. */
struct symbol_view address_symbol(const struct code_space *space, uint64_t ip, uint64_t time_ns);

/** " sym+off (dso)" as the fields want it. */
void symbol_text(struct text *text, const struct symbol_view *view, uint32_t fields);

/** " ilen: N insn: xx xx" and the disassembly, as the fields want it. */
void insn_text(struct text *text, const struct insn *insn, const struct code_space *space,
	       const struct block_style *style);

/** Prepare the lines of a block of this code, which keeps them, or take those of another thread,
 * whose style must be the same. NULL when memory is out. */
const struct block_text *block_make_lines(struct block *block, const struct block_style *style,
					  struct code *code);

/** The prepared lines of a block, made at the first call; as block_make_lines(). */
static inline const struct block_text *
block_lines(struct block *block, const struct block_style *style, struct code *code)
{
	return block->lines ? block->lines : block_make_lines(block, style, code);
}
