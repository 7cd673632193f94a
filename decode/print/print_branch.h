/* Lines of branches: the source is printed at once, the target when the flow gets there. Internal
 * to the printer. */
#pragma once

#include "decode/print/printer.h"

/** Begin the line of a branch by an instruction of a block. The target must follow. */
void print_branch_from_insn(struct printer *printer, struct block *block, unsigned index,
			    uint32_t flags);

/** The same from an address that is no branch instruction; 0: from outside of the trace. */
void print_branch_from(struct printer *printer, uint64_t ip, uint32_t flags);

/** The line of a branch by instruction `index` that leads to another block; otherwise the same. */
bool print_branch_between(struct printer *printer, struct block *block, unsigned index,
			  struct block *to);

/**
 * The target, 0: it is not known yet, if it will be at all. The name of an address where a block
 * will begin is taken from that block: the line stays open until print_branch_arrived() or
 * print_branch_settle().
 */
void print_branch_to(struct printer *printer, uint64_t ip);

/** A branch by an instruction of a block to the next one there. */
void print_branch_within(struct printer *printer, struct block *block, unsigned index,
			 uint32_t flags);

/**
 * All such branches before instruction `count`, where every branch has a line and nothing is in it
 * that only the moment tells. False without memory: nothing was printed.
 */
bool print_branches_within(struct printer *printer, struct block *block, unsigned count);

/** The flow is in `block`: complete an open line. */
void print_branch_arrived(struct printer *printer, struct block *block);

/** Complete an open line now. */
void print_branch_settle(struct printer *printer);

/** A branch between host and guest in perf's two halves; `insn` NULL for one without instruction.
 */
void print_vm_branch(struct printer *printer, uint64_t from, const struct insn *insn,
		     uint32_t flags, uint64_t to);
