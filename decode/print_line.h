/* One line at a time: what a printer writes into its text. Not for others. */
#pragma once

#include "decode/printer.h"

/**
 * Begin a line: bring the prefix up to date and say whether the line is wanted at all. The prefix
 * itself is left to the caller to copy.
 */
bool print_begin(struct printer *printer);

/** An instruction of a block as a sample that stands for `period` instructions. */
void print_sample(struct printer *printer, const struct block *block, unsigned index,
		  uint64_t period);

/** An instruction with the fields that cannot be prepared (addr, ipc). */
void print_full_insn(struct printer *printer, const struct block *block, unsigned index,
		     bool taken);

/** The source half of a branch line: an instruction of a block. The target half must follow. */
void print_branch_from_insn(struct printer *printer, struct block *block, unsigned index,
			    uint32_t flags);

/** The same from an address that is no branch instruction; 0: from outside of the trace. */
void print_branch_from(struct printer *printer, uint64_t ip, uint32_t flags);

/**
 * The target half. The name of an address where a block will begin is taken from that block: the
 * line stays open until print_branch_arrived() or print_branch_settle().
 */
void print_branch_to(struct printer *printer, uint64_t ip);

/** The same for an instruction of a block. */
void print_branch_to_insn(struct printer *printer, struct block *block, unsigned index);

/** The flow is in `block`: complete an open line. */
void print_branch_arrived(struct printer *printer, struct block *block);

/** Complete an open line now. */
void print_branch_settle(struct printer *printer);

/** A branch between host and guest in perf's two halves; `insn` NULL for one without instruction. */
void print_vm_branch(struct printer *printer, uint64_t from, const struct insn *insn,
		     uint32_t flags, uint64_t to);

/** An error line about printer->gap_kind. */
void print_gap(struct printer *printer, uint64_t ip);

/** A line for printer->event, a packet that is about something other than flow. */
void print_event(struct printer *printer, uint64_t payload);
