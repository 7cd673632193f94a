#include "decode/print/printer.h"

#include <stdio.h>
#include <string.h>

#include "decode/base/vec.h"
#include "decode/print/print_async.h"
#include "decode/print/print_branch.h"
#include "decode/print/print_event.h"
#include "decode/print/print_line.h"
#include "decode/print/print_origin.h"
#include "decode/print/print_prefix.h"
#include "decode/print/print_waiting.h"
#include "decode/print/sample_flags.h"

/* Do all instructions have a line, and nothing is in them that only the moment tells? */
static bool is_plain(const struct print_config *config)
{
	return config->itrace.instructions && prints_every_insn(config) && !config->full_insns &&
	       !config->itrace.skip && !(config->fields & (FIELD_IPC | FIELD_FLAGS));
}

/* The same of branches? */
static bool has_plain_branches(const struct print_config *config)
{
	const struct itrace *itrace = &config->itrace;

	return itrace->branches && !itrace->calls && !itrace->returns && !itrace->instructions &&
	       !follows_branches(config) && !(config->fields & FIELD_IPC);
}

void printer_init(struct printer *printer, const struct print_config *config,
		  const struct aux_queue *queue, const struct flow_code *where)
{
	*printer = (struct printer){ .config = config, .queue = queue, .where = *where };
	printer->context = pt_context_unknown();
	printer->thread.pid = queue->pid;
	printer->thread.tid = queue->tid;
	prefix_outdate(printer);
	printer->has_branches = config->itrace.branches || follows_branches(config);
	printer->has_plain_insns = !printer->has_branches && is_plain(config);
	printer->has_plain_branches = has_plain_branches(config);
	printer->skip = config->itrace.skip;
	insn_period_init(&printer->period, &config->itrace, config->pt);
	print_origin_init(printer);
}

void printer_free(struct printer *printer)
{
	text_free(&printer->out);
	text_free(&printer->prefix.text);
	text_free(&printer->event_data);
	for (int i = 0; i < BRANCH_LEADS; i++)
		text_free(&printer->leads[i].text);
	vec_free(&printer->runs);
	call_stacks_free(&printer->calls);
}

/* Instructions [from, to) of a block ran, one by one. */
static void step_insns(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	uint32_t more = print_context_flags(printer, &printer->context);
	unsigned passed = insn_period_pass(&printer->period, printer->tsc, to - from);

	printer->ipc.total.insns += passed;
	printer->ipc.in_line = has_approximate_ipc(printer->config);
	for (unsigned i = from + passed; i < to; i++) {
		const struct insn *insn = &block->insns[i];
		uint64_t period = insn_period_count(&printer->period, printer->tsc);

		printer->ipc.total.insns++;
		if (period)
			print_insn(printer, block, i, period, sample_flags_of(insn->class) | more,
				   insn->target);
	}
	printer->ipc.in_line = false;
}

/* The same, all at once where their lines are just as they are prepared. */
static void tell_insns(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	const struct print_config *config = printer->config;

	if (!prints_every_insn(config) || config->full_insns || printer->skip ||
	    has_approximate_ipc(printer->config) ||
	    (config->fields & FIELD_FLAGS && print_context_flags(printer, &printer->context))) {
		step_insns(printer, block, from, to);
	} else {
		print_lines(printer, block, from, to);
		printer->ipc.total.insns += to - from;
	}
}

/* Instructions [from, to) of a block ran; branches among them went to their targets. */
static inline void take_insns(struct printer *printer, struct block *block, unsigned from,
			      unsigned to)
{
	if (printer->config->itrace.instructions && from < to)
		tell_insns(printer, block, from, to);
	else
		printer->ipc.total.insns += to - from;
}

/* Do lines of instructions that are branches have more than can be prepared? */
static bool has_full_branches(const struct print_config *config)
{
	return config->full_insns || config->fields & FIELD_IPC;
}

/* The last instruction of those that ran, when it is a branch. */
static void wait_for_branch(struct printer *printer, struct block *block, unsigned index,
			    bool has_ipc)
{
	const struct print_config *config = printer->config;
	struct waiting_branch branch = { .block = block, .index = index, .has_ipc = has_ipc };

	if (config->itrace.instructions &&
	    (has_full_branches(config) || config->fields & FIELD_FLAGS ||
	     !prints_every_insn(config))) {
		printer->ipc.total.insns++;
		branch.period = insn_period_count(&printer->period, printer->tsc);
	} else {
		take_insns(printer, block, index, index + 1);
	}
	print_waiting_keep(printer, branch);
}

/* A conditional branch that was not taken: an instruction, but no branch. */
static void pass_condition(struct printer *printer, struct block *block, unsigned index,
			   bool has_ipc)
{
	const struct print_config *config = printer->config;
	uint64_t period;

	if (!config->itrace.instructions || !has_full_branches(config)) {
		take_insns(printer, block, index, index + 1);
		return;
	}
	period = insn_period_count(&printer->period, printer->tsc);
	printer->ipc.total.insns++;
	printer->ipc.in_line = has_ipc;
	if (period)
		print_insn(printer, block, index, period,
			   print_insn_flags(printer, &block->insns[index], &printer->context), 0);
	printer->ipc.in_line = false;
}

/* Do branches have lines at present, and just as they are prepared? */
static bool has_prepared_branches(const struct printer *printer)
{
	return printer->has_plain_branches && !printer->skip &&
	       (!(printer->config->fields & FIELD_FLAGS) ||
		!print_context_flags(printer, &printer->context));
}

/* All but the last of the instructions that ran: branches among them are direct and known. */
static void take_known(struct printer *printer, struct block *block, unsigned count)
{
	unsigned from = 0;

	if (!printer->has_branches || block->straight) {
		take_insns(printer, block, 0, count);
	} else if (has_prepared_branches(printer) && print_branches_within(printer, block, count)) {
		printer->ipc.total.insns += count;
	} else {
		for (unsigned i = 0; i < count; i++) {
			if (!insn_is_branch(&block->insns[i]))
				continue;
			take_insns(printer, block, from, i + 1);
			printer->ipc.in_line = has_approximate_ipc(printer->config);
			print_branch_within(
				printer, block, i,
				print_insn_flags(printer, &block->insns[i], &printer->context));
			printer->ipc.in_line = false;
			from = i + 1;
		}
		take_insns(printer, block, from, count);
	}
}

/* Did a packet tell how the block was left? Only there cycles are known. */
static bool is_decided(const struct flow_item *item)
{
	return item->count == item->block->count && item->block->end != BLOCK_GOES_ON &&
	       item->block->end != BLOCK_NO_CODE;
}

static bool is_kind(const struct flow_item *item, const struct flow_item *end, enum flow_kind kind)
{
	return item < end && item->kind == kind;
}

/* Did a packet tell where the last branch went, if only behind code that is in no copy, or that
 * tracing ended with it? */
static bool is_last_told(const struct flow_item *item, const struct flow_item *end)
{
	return is_decided(item) || is_kind(item + 1, end, FLOW_END) ||
	       (item->block->end == BLOCK_NO_CODE && is_kind(item + 1, end, FLOW_TO));
}

/* What the last instruction that ran is; without a look at it where the block tells. */
static enum insn_class last_class(const struct flow_item *item)
{
	const struct block *block = item->block;

	return item->count == block->count && block->end == BLOCK_CONDITIONAL
		       ? INSN_JCC
		       : block->insns[item->count - 1].class;
}

/* All that ran of a block, one part of it at the time before and the branch at its end at the one
 * that a packet told. */
static void take_parts(struct printer *printer, const struct flow_item *item, bool settles)
{
	struct block *block = item->block;
	unsigned last = item->count - 1;
	bool decided = is_decided(item), has_ipc;

	take_known(printer, block, last);
	if (settles)
		print_settle_time(printer);
	has_ipc = has_approximate_ipc(printer->config) || (printer->ipc.is_due && decided);
	/* later branches of the same packet ran at some time after these cycles */
	if (decided)
		printer->ipc.is_due = false;
	if (block->insns[last].class != INSN_JCC || item->flags & FLOW_TAKEN)
		wait_for_branch(printer, block, last, has_ipc);
	else
		pass_condition(printer, block, last, has_ipc);
}

/* The same in one go, where there is nothing to tell them apart. */
static void take_whole(struct printer *printer, const struct flow_item *item)
{
	struct block *block = item->block;
	unsigned last = item->count - 1;

	print_lines(printer, block, 0, item->count);
	printer->ipc.total.insns += item->count;
	if (block->insns[last].class != INSN_JCC || item->flags & FLOW_TAKEN)
		print_waiting_keep(printer, (struct waiting_branch){ block, last });
}

/* The block where the last branch of an item leads, if the flow goes on there and what is told
 * between them is only when; NULL otherwise. */
static struct block *find_target(const struct flow_item *item, const struct flow_item *end)
{
	uint64_t ip = last_class(item) == INSN_JCC ? item->block->target : 0;

	if (is_kind(++item, end, FLOW_TO))
		ip = item++->value;
	while (is_kind(item, end, FLOW_TIME))
		item++;
	return is_kind(item, end, FLOW_BLOCK) && item->block->ip == ip && item->block->count
		       ? item->block
		       : NULL;
}

/* All that ran of a block where only branches have lines, just as they are prepared. */
static void take_branches(struct printer *printer, const struct flow_item *item,
			  const struct flow_item *end, bool settles)
{
	struct block *block = item->block, *target;
	unsigned last = item->count - 1;

	take_known(printer, block, last);
	printer->ipc.total.insns++;
	if (settles)
		print_settle_time(printer);
	if (last_class(item) == INSN_JCC && !(item->flags & FLOW_TAKEN))
		return;
	print_waiting_keep(printer, (struct waiting_branch){ block, last });
	target = find_target(item, end);
	if (target && print_branch_between(printer, block, last, target))
		printer->waiting.block = NULL;
}

static void take_block(struct printer *printer, const struct flow_item *item,
		       const struct flow_item *end)
{
	struct block *block = item->block;
	bool settles = is_last_told(item, end);

	print_waiting_settle(printer);
	printer->space = block->space;
	print_branch_arrived(printer, block);
	printer->ip = block_ip_after(block, item->count);
	if (!item->count)
		return;
	if (block->ip == printer->where.code->switch_ip && !printer->context.nr)
		prefix_switch(printer);
	if (last_class(item) == INSN_PLAIN)
		take_known(printer, block, item->count);
	else if (has_prepared_branches(printer))
		take_branches(printer, item, end, settles);
	else if (printer->has_plain_insns && (!settles || printer->told_ns == printer->time_ns))
		take_whole(printer, item);
	else
		take_parts(printer, item, settles);
	if (item->flags & FLOW_TAKEN && block->end == BLOCK_CONDITIONAL &&
	    item->count == block->count)
		printer->ip = block->target;
}

static void take_to(struct printer *printer, uint64_t ip)
{
	if (printer->waiting.block)
		print_waiting_finish(printer, ip, 0);
	else if (printer->line.open && !printer->line.to_ip)
		print_branch_to(printer, ip);
	print_arrive(printer, ip);
}

static void take_time(struct printer *printer, const struct flow_item *item)
{
	if (item->count)
		print_waiting_settle(printer); /* these cycles came after it */
	printer->ipc.is_due |= item->count > 0;
	if (!printer->is_off)
		printer->ipc.told_cycles += item->count;
	if (item->value == printer->tsc || printer->config->timeless)
		return;
	print_waiting_settle(printer);
	printer->tsc = item->value;
	printer->told_ns = item->value;
	if (printer->config->pt->conv.valid)
		printer->told_ns = time_conv_ns(&printer->config->pt->conv, item->value);
	insn_period_new_time(&printer->period);
}

/* What changes with the context and is an event of its own. */
static void tell_changes(struct printer *printer, const struct pt_context *before,
			 const struct flow_item *branch)
{
	if (before->in_tx != printer->context.in_tx)
		print_transaction(printer);
	if (before->if_clear != printer->context.if_clear && printer->config->pt->have_event_trace)
		print_interrupt_flag(printer, branch);
}

/* `branch`: the FLOW_TO or FLOW_ASYNC with which it changes; NULL: none. */
static void take_context(struct printer *printer, const struct pt_context *context,
			 const struct flow_item *branch)
{
	struct pt_context before = printer->context;

	print_branch_settle(printer); /* its target belongs to the context before */
	if (!printer->waiting.block)
		printer->branch_context = printer->context;
	printer->context = *context;
	prefix_outdate(printer);
	if (printer->has_context)
		tell_changes(printer, &before, branch);
	printer->has_context = true;
}

static void take_gap(struct printer *printer, uint64_t ip)
{
	printer->gaps[printer->gap.kind]++;
	if (printer->gap.kind == GAP_THUNK)
		return;
	print_waiting_settle(printer);
	print_branch_settle(printer);
	print_gap(printer, ip);
	print_origin_lost(printer);
}

/* What leads up to a PSB is done when it comes. */
static void take_event(struct printer *printer, uint64_t payload)
{
	if (printer->event.count == PT_PSB) {
		print_waiting_settle(printer);
		print_branch_settle(printer);
	}
	print_event(printer, payload);
}

static void take_item(struct printer *printer, const struct flow_batch *batch,
		      const struct flow_item *item)
{
	const struct flow_item *end = batch->items + batch->count;
	bool is_branch;

	/* a FLOW_TO is about a branch of before, at its time */
	if (item->kind != FLOW_BLOCK && item->kind != FLOW_TIME && item->kind != FLOW_TO)
		print_settle_time(printer);
	switch ((enum flow_kind)item->kind) {
	case FLOW_BLOCK: take_block(printer, item, end); break;
	case FLOW_TO: take_to(printer, item->value); break;
	case FLOW_ASYNC: print_async_branch(printer, item->value); break;
	case FLOW_BEGIN: print_async_begin(printer, item); break;
	case FLOW_END: print_async_end_by_insn(printer, item->value); break;
	case FLOW_END_ASYNC: print_async_end(printer, item->value); break;
	case FLOW_ABORT: printer->is_aborting = true; break;
	case FLOW_TIME: take_time(printer, item); break;
	case FLOW_CONTEXT:
		is_branch = is_kind(item + 1, end, FLOW_TO) || is_kind(item + 1, end, FLOW_ASYNC);
		take_context(printer, &batch->contexts[item->value], is_branch ? item + 1 : NULL);
		break;
	case FLOW_GAP:
		printer->gap.kind = (enum gap_kind)item->count;
		printer->gap.position = item->value;
		break;
	case FLOW_AT: take_gap(printer, item->value); break;
	case FLOW_EVENT: printer->event = *item; break;
	case FLOW_VALUE: take_event(printer, item->value); break;
	case FLOW_IP: print_async_insn(printer, item); break;
	case FLOW_HERE: printer->ip = item->value; break;
	case FLOW_SWITCH: prefix_switch(printer); break;
	}
}

void printer_print(struct printer *printer, const struct flow_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		take_item(printer, batch, &batch->items[i]);
	print_waiting_settle(printer);
	print_branch_settle(printer);
	prefix_end_run(printer);
}
