#include "decode/print/print_async.h"

#include "decode/print/print_branch.h"
#include "decode/print/print_line.h"
#include "decode/print/print_prefix.h"
#include "decode/print/print_waiting.h"
#include "decode/print/sample_flags.h"

/* Both lines of a branch between host and guest, or the one of any other. */
static void print_branch(struct printer *printer, uint64_t from, uint32_t flags, uint64_t to)
{
	const struct pt_context *before = &printer->branch_context;

	if (!printer->has_branches)
		return;
	flags |= print_context_flags(printer, before) | print_toggle_flag(printer);
	printer->ipc.in_line = printer->ipc.is_due || has_approximate_ipc(printer->config);
	printer->ipc.is_due = false;
	if (from && to && before->nr != printer->context.nr) {
		print_vm_branch(printer, from, NULL, flags, to);
	} else {
		print_branch_from(printer, from, flags);
		print_branch_to(printer, to);
	}
	printer->ipc.in_line = false;
}

/* By what became of the context. */
static uint32_t async_flags(struct printer *printer)
{
	bool leaves_guest = printer->branch_context.nr && !printer->context.nr;

	if (printer->is_aborting)
		return SAMPLE_BRANCH | SAMPLE_TX_ABORT;
	if (leaves_guest)
		return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_VMEXIT;
	return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_INTERRUPT;
}

void print_async_insn(struct printer *printer, const struct flow_item *item)
{
	printer->ip = item->value;
	printer->ipc.total.insns++;
	printer->branch_context = printer->context;
	if (!printer->config->itrace.instructions)
		return;
	if (item->flags & FLOW_TAKEN)
		printer->has_ip_due = true;
	else
		print_bare_insn(printer, item->value,
				print_context_flags(printer, &printer->context), 0);
}

/* The line of the instruction that a branch without one is from; its context is the one before. */
static void print_due_ip(struct printer *printer, uint32_t flags, uint64_t addr)
{
	struct pt_context after = printer->context;

	if (!printer->has_ip_due)
		return;
	printer->has_ip_due = false;
	(void)print_set_context(printer, printer->branch_context);
	print_bare_insn(printer, printer->ip,
			flags | print_context_flags(printer, &printer->branch_context), addr);
	(void)print_set_context(printer, after);
}

void print_async_branch(struct printer *printer, uint64_t ip)
{
	uint32_t flags = async_flags(printer);

	print_waiting_settle(printer);
	print_due_ip(printer, flags, ip);
	print_branch(printer, printer->ip, flags, ip);
	printer->is_aborting = false;
	print_arrive(printer, ip);
}

void print_async_begin(struct printer *printer, const struct flow_item *item)
{
	print_waiting_settle(printer);
	print_branch_settle(printer);
	prefix_switch(printer); /* tracing begins once the kernel has switched to the thread */
	printer->is_off = false;
	printer->branch_context = printer->context;
	if (!(item->flags & FLOW_STATED))
		print_branch(printer, 0, SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, item->value);
	print_arrive(printer, item->value);
}

static void turn_off(struct printer *printer)
{
	printer->is_off = true;
	insn_period_stop(&printer->period);
	print_arrive(printer, 0);
}

void print_async_end_by_insn(struct printer *printer, uint64_t ip)
{
	if (printer->waiting.block)
		print_waiting_finish(printer, ip, SAMPLE_TRACE_END);
	else
		print_branch(printer, printer->ip, SAMPLE_BRANCH | SAMPLE_TRACE_END, ip);
	turn_off(printer);
}

void print_async_end(struct printer *printer, uint64_t ip)
{
	const uint32_t flags = SAMPLE_BRANCH | SAMPLE_ASYNC | SAMPLE_TRACE_END;

	print_waiting_settle(printer);
	print_due_ip(printer, flags, ip);
	print_branch(printer, printer->ip, flags, ip);
	turn_off(printer);
}
