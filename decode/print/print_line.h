/* Lines of instructions, and what all lines have in common. Internal to the printer. */
#pragma once

#include "decode/print/printer.h"
#include "decode/print/sample_flags.h"

/** The flags (enum sample_flag) that every instruction has in a context. */
uint32_t print_context_flags(const struct printer *printer, const struct pt_context *context);

/** The flags of an instruction in a context. */
static inline uint32_t print_insn_flags(const struct printer *printer, const struct insn *insn,
					const struct pt_context *context)
{
	return sample_flags_of(insn->class) | print_context_flags(printer, context);
}

/** The flag of a branch that changed the interrupt flag since `branch_context`; 0: it did not. */
uint32_t print_toggle_flag(const struct printer *printer);

/** Lines are about that context from now on. Returns whether it is another. */
bool print_set_context(struct printer *printer, struct pt_context context);

/** The flow went on to `ip`, in the present context. */
static inline void print_arrive(struct printer *printer, uint64_t ip)
{
	printer->ip = ip;
	printer->branch_context = printer->context;
}

/** Lines are about the time that packets told from now on; what ran before is complete then. */
void print_set_time(struct printer *printer);

/** The same, unless they are already. */
static inline void print_settle_time(struct printer *printer)
{
	if (printer->told_ns != printer->time_ns ||
	    printer->ipc.told_cycles != printer->ipc.total.cycles)
		print_set_time(printer);
}

/** Bring prefix and thread up to date with time and context; completes an open branch. */
void print_refresh(struct printer *printer);

/**
 * Begin a line: print_refresh(), and say whether the line is wanted at all. The prefix itself is
 * left to print_add_prefix().
 */
bool print_begin(struct printer *printer);

/**
 * Append lines `from` to `to` of a text, each behind the prefix; the first of them was begun.
 *
 * @offsets  of the lines, and of the end of the last one
 */
void print_prepared(struct printer *printer, const char *lines, const uint32_t *offsets,
		    unsigned from, unsigned to);

/** Append the prefix. */
void print_add_prefix(struct printer *printer);

/** Append period (0: none) and name of an event, in the columns of perf. */
void print_add_event(const struct print_config *config, struct text *text, const char *name,
		     uint64_t period);

/** The address space of an address in the present context; NULL for address 0. */
struct code_space *print_space(struct printer *printer, uint64_t ip);

/** Append " ip" and what it is called. */
void print_add_address(struct printer *printer, const struct code_space *space, uint64_t ip);

/** Append the instruction that is at an address in `space` (NULL: none) as the fields want it,
 * where no block tells which one it was: it was interrupted there, say, or code is not followed. */
void print_add_insn_at(struct printer *printer, struct code_space *space, uint64_t ip);

/** Prepared lines of instructions `from` to `to` of a block. */
void print_lines(struct printer *printer, struct block *block, unsigned from, unsigned to);

/** An instruction that no block is known of; otherwise as print_insn(). */
void print_bare_insn(struct printer *printer, uint64_t ip, uint32_t flags, uint64_t addr);

/**
 * An instruction of a block with the fields that cannot be prepared.
 *
 * @period  how many instructions it stands for
 * @flags   enum sample_flag
 * @addr    where it goes if it is a branch, 0 unknown
 */
void print_insn(struct printer *printer, struct block *block, unsigned index, uint64_t period,
		uint32_t flags, uint64_t addr);
