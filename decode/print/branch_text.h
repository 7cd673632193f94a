/* The text of a block's branches that never changes, made once: as block_text.h for instructions.
 * Internal to the printer. */
#pragma once

#include "decode/print/printer.h"

/** Where in a text something is, [from, to); nowhere where that is not wanted. */
struct text_range {
	uint32_t from, to;
};

/** One end of a branch. */
struct branch_end {
	struct text_range place; /* "ip sym+off (dso)" */
	struct text_range name;  /* to be indented: of the symbol, otherwise the ip */
};

/** One branch. Line, source, target, instruction and end are one behind the other. */
struct branch_parts {
	uint32_t index; /* of the instruction in the block */
	uint32_t flags; /* enum sample_flag: as it has them as a rule, and its line */
	uint32_t line;  /* where that begins: period, event and flags, then */
	struct branch_end source;
	struct branch_end target; /* where that is not the next instruction, it is empty */
	uint32_t insn, end;       /* the instruction itself, and what follows on the newline */
	struct text_range dso;    /* the column before an indented name */
};

struct branch_text {
	const char *lines;
	const uint32_t *offsets; /* of all lines, and where the last ends */
	struct branch_end start; /* of the block, for branches that lead to it */
	/* All branches of the block in order; those to the next instruction come first. */
	const struct branch_parts *branches;
	unsigned count, known;
};

/** Prepare the text of a block's branches, as block_make_lines(). NULL when memory is out. */
const struct branch_text *branch_make_text(struct printer *printer, struct block *block);

/** The prepared text of its branches, made at the first call; as branch_make_text(). */
static inline const struct branch_text *branch_text(struct printer *printer, struct block *block)
{
	return block->branches ? block->branches : branch_make_text(printer, block);
}

/** The branch that is instruction `index`; NULL if none is, or without text. */
static inline const struct branch_parts *branch_parts_at(const struct branch_text *text,
							 unsigned index)
{
	for (unsigned i = text ? text->count : 0; i--;)
		if (text->branches[i].index == index)
			return &text->branches[i];
	return NULL;
}

/** Period, event and flags, up to the address: made once for each kind of branch. */
const struct text *branch_lead(struct printer *printer, uint32_t flags);

/** Append "ip sym+off (dso)" as the fields want it. */
void branch_add_place(struct text *text, uint64_t ip, const struct symbol_view *symbol,
		      uint32_t fields);

/** Append the name of an address that is to be indented. */
void branch_add_name(struct text *text, uint64_t ip, const struct symbol_view *symbol);

/** Append the column of the dso before such a name. */
void branch_add_dso(struct text *text, const char *dso, unsigned width);
