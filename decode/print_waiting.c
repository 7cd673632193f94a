#include "decode/print_waiting.h"

#include "decode/print_branch.h"
#include "decode/print_line.h"
#include "decode/sample_flags.h"

void print_waiting_keep(struct printer *printer, struct block *block, unsigned index)
{
	printer->branch_block = block;
	printer->branch_index = index;
	printer->branch_context = printer->context;
}

/* A branch to where its instruction says. */
static void print_known_branch(struct printer *printer, struct block *block, unsigned index)
{
	const struct insn *insn = &block->insns[index];
	uint32_t flags =
		sample_flags_of(insn->class) | print_context_flags(printer, &printer->context);

	if (index + 1 < block->count) {
		print_branch_within(printer, block, index, flags);
	} else {
		print_branch_from_insn(printer, block, index, flags);
		print_branch_to(printer, insn->target);
	}
}

/* The line of the branch that waits, as an instruction; its context is the one before. */
static void print_waiting_insn(struct printer *printer, uint32_t flags, uint64_t addr)
{
	struct pt_context after = printer->context;

	if (!printer->branch_period)
		return;
	(void)print_set_context(printer, printer->branch_context);
	printer->ipc.in_line = printer->branch_has_ipc;
	print_insn(printer, printer->branch_block, printer->branch_index, printer->branch_period,
		   flags, addr);
	printer->ipc.in_line = false;
	printer->branch_period = 0;
	(void)print_set_context(printer, after);
}

/* The branch that waits went to where its instruction says, before the context changed. */
static void print_waiting_branch(struct printer *printer)
{
	struct pt_context after = printer->context;
	bool changed = print_set_context(printer, printer->branch_context);

	print_known_branch(printer, printer->branch_block, printer->branch_index);
	if (!changed)
		return;
	print_branch_settle(printer);
	(void)print_set_context(printer, after);
}

void print_waiting_finish(struct printer *printer, uint64_t ip, uint32_t more_flags)
{
	struct block *block = printer->branch_block;
	const struct insn *insn;
	uint32_t flags;

	if (!block)
		return;
	insn = &block->insns[printer->branch_index];
	flags = sample_flags_of(insn->class) |
		print_context_flags(printer, &printer->branch_context) |
		print_toggle_flag(printer) | more_flags;
	print_waiting_insn(printer, flags, ip);
	printer->branch_block = NULL;
	if (!printer->branches)
		return;
	printer->ipc.in_line = printer->branch_has_ipc;
	if (ip && printer->branch_context.nr != printer->context.nr) {
		print_vm_branch(printer, insn->ip, insn, flags, ip);
	} else {
		print_branch_from_insn(printer, block, printer->branch_index, flags);
		print_branch_to(printer, ip);
	}
	printer->ipc.in_line = false;
}

void print_waiting_end(struct printer *printer)
{
	const struct insn *insn = &printer->branch_block->insns[printer->branch_index];

	print_waiting_insn(printer,
			   sample_flags_of(insn->class) |
				   print_context_flags(printer, &printer->branch_context),
			   insn->target);
	printer->ipc.in_line = printer->branch_has_ipc;
	if (insn->target && printer->branches)
		print_waiting_branch(printer);
	printer->ipc.in_line = false;
	printer->branch_block = NULL;
}
