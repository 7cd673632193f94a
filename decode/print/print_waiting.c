#include "decode/print/print_waiting.h"

#include "decode/print/print_branch.h"
#include "decode/print/print_line.h"

/* A branch to where its instruction says. */
static void print_known_branch(struct printer *printer, struct block *block, unsigned index)
{
	const struct insn *insn = &block->insns[index];
	uint32_t flags = print_insn_flags(printer, insn, &printer->context);

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
	struct waiting_branch *waiting = &printer->waiting;
	struct pt_context after = printer->context;

	if (!waiting->period)
		return;
	(void)print_set_context(printer, printer->branch_context);
	printer->ipc.in_line = waiting->has_ipc;
	print_insn(printer, waiting->block, waiting->index, waiting->period, flags, addr);
	printer->ipc.in_line = false;
	waiting->period = 0;
	(void)print_set_context(printer, after);
}

/* The branch that waits went to where its instruction says, before the context changed. */
static void print_waiting_branch(struct printer *printer)
{
	struct pt_context after = printer->context;
	bool changed = print_set_context(printer, printer->branch_context);

	print_known_branch(printer, printer->waiting.block, printer->waiting.index);
	if (!changed)
		return;
	print_branch_settle(printer);
	(void)print_set_context(printer, after);
}

void print_waiting_finish(struct printer *printer, uint64_t ip, uint32_t more_flags)
{
	const struct waiting_branch waiting = printer->waiting;
	const struct insn *insn;
	uint32_t flags;

	if (!waiting.block)
		return;
	insn = &waiting.block->insns[waiting.index];
	flags = print_insn_flags(printer, insn, &printer->branch_context) |
		print_toggle_flag(printer) | more_flags;
	print_waiting_insn(printer, flags, ip);
	printer->waiting.block = NULL;
	if (!printer->has_branches)
		return;
	printer->ipc.in_line = waiting.has_ipc;
	if (ip && printer->branch_context.nr != printer->context.nr) {
		print_vm_branch(printer, insn->ip, insn, flags, ip);
	} else {
		print_branch_from_insn(printer, waiting.block, waiting.index, flags);
		print_branch_to(printer, ip);
	}
	printer->ipc.in_line = false;
}

void print_waiting_end(struct printer *printer)
{
	struct waiting_branch *waiting = &printer->waiting;
	const struct insn *insn = &waiting->block->insns[waiting->index];
	uint32_t flags = print_insn_flags(printer, insn, &printer->branch_context);

	print_waiting_insn(printer, flags, insn->target);
	printer->ipc.in_line = waiting->has_ipc;
	if (insn->target && printer->has_branches)
		print_waiting_branch(printer);
	printer->ipc.in_line = false;
	waiting->block = NULL;
}
