#include "decode/printer.h"

#include <stdio.h>
#include <string.h>

#include "decode/base/vec.h"
#include "decode/print_branch.h"
#include "decode/print_event.h"
#include "decode/print_line.h"
#include "decode/print_origin.h"
#include "decode/print_prefix.h"
#include "decode/sample_flags.h"

/* Whether the branch that ends here changed the interrupt flag. */
static uint32_t toggle_flag(const struct printer *printer)
{
	return printer->config->pt->have_event_trace &&
			       printer->branch_context.if_clear != printer->context.if_clear
		       ? SAMPLE_IF_TOGGLE
		       : 0;
}

/* The largest power of two that is not more. */
static uint64_t power_of_two(uint64_t value)
{
	return value ? UINT64_C(1) << (63 - __builtin_clzll(value)) : 1;
}

static uint64_t period_ticks(const struct print_config *config)
{
	uint64_t period = config->itrace.period;

	if (config->itrace.period_unit == PERIOD_NS && config->pt->conv.valid)
		period = time_conv_tsc(&config->pt->conv, config->pt->conv.zero + period);
	return power_of_two(period);
}

/* Are origins of samples wanted? Without times nothing tells where in the trace a sample was taken.
 */
static bool wants_origins(const struct print_config *config)
{
	const struct origin_limits *limits = &config->itrace.samples;

	return (limits->calls || limits->branches) && config->data && config->pt->conv.valid &&
	       !config->timeless;
}

/* Do all instructions have a line, and nothing is in them that only the moment tells? */
static bool is_plain(const struct print_config *config)
{
	return config->itrace.instructions && prints_every_insn(config) && !config->full_insns &&
	       !config->itrace.skip && !(config->fields & (FIELD_IPC | FIELD_FLAGS));
}

void printer_init(struct printer *printer, const struct print_config *config,
		  const struct aux_queue *queue, const struct flow_code *where)
{
	*printer = (struct printer){ .config = config, .queue = queue, .where = *where };
	printer->context = pt_context_unknown();
	printer->pid = queue->pid;
	printer->tid = queue->tid;
	printer->stale = printer->place_stale = true;
	printer->branches = config->itrace.branches || follows_branches(config);
	printer->plain = !printer->branches && is_plain(config);
	printer->skip = config->itrace.skip;
	printer->until_sample = config->itrace.period;
	printer->period_ticks = period_ticks(config);
	printer->record_ns = wants_origins(config) ? 0 : UINT64_MAX;
}

void printer_free(struct printer *printer)
{
	text_free(&printer->out);
	text_free(&printer->prefix);
	text_free(&printer->event_data);
	for (int i = 0; i < BRANCH_LEADS; i++)
		text_free(&printer->leads[i].text);
	vec_free(&printer->runs);
	call_stacks_free(&printer->calls);
}

/* Do lines have IPC wherever cycles were told, not only at the branch that the packet behind them
 * decides? */
static bool is_approximate(const struct printer *printer)
{
	return printer->config->itrace.approximate_ipc && printer->config->fields & FIELD_IPC;
}

/* The flags that every instruction has at present. */
static uint32_t context_flags(const struct printer *printer, const struct pt_context *context)
{
	uint32_t flags = context->in_tx ? SAMPLE_IN_TX : 0;

	if (context->if_clear && printer->config->pt->have_event_trace)
		flags |= SAMPLE_IF_CLEAR;
	return flags;
}

/* Has the time come to a multiple of the period? Between two times of the trace an instruction is
 * taken to last a tick, as perf has it. Of a period that began while tracing was off only its end
 * is due, and that only if instructions reach it, not the next time. */
static bool time_due(struct printer *printer)
{
	uint64_t before = printer->tsc + printer->since_time++, stamp;

	if (!printer->in_period && (before + 1) / printer->period_ticks > printer->last_stamp) {
		printer->last_stamp = (before + 1) / printer->period_ticks;
		printer->in_period = true;
	}
	stamp = (before + 1 + !printer->in_period) / printer->period_ticks;
	if (stamp <= printer->last_stamp)
		return false;
	printer->last_stamp = stamp;
	return true;
}

/* Every n-th instruction, or the first after a time; the number since the last is the period.
 * Returns it for one of which a line is due, otherwise 0. */
static uint64_t sample_due(struct printer *printer)
{
	const struct itrace *itrace = &printer->config->itrace;
	uint64_t period = ++printer->since_sample;

	if (itrace->period_unit == PERIOD_INSNS ? --printer->until_sample > 0 : !time_due(printer))
		return 0;
	printer->since_sample = 0;
	printer->until_sample = itrace->period;
	return period;
}

/* Instructions [from, to) of a block ran, one by one. */
static void step_insns(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	uint32_t more = context_flags(printer, &printer->context);
	bool every = prints_every_insn(printer->config);

	printer->ipc_now = is_approximate(printer);
	for (unsigned i = from; i < to; i++) {
		const struct insn *insn = &block->insns[i];
		uint64_t period = every ? 1 : sample_due(printer);

		printer->insns++;
		if (period)
			print_insn(printer, block, i, period, sample_flags_of(insn->class) | more,
				   insn->target);
	}
	printer->ipc_now = false;
}

static void tell_insns(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	const struct print_config *config = printer->config;

	if (!prints_every_insn(config) || config->full_insns || printer->skip ||
	    is_approximate(printer) ||
	    (config->fields & FIELD_FLAGS && context_flags(printer, &printer->context))) {
		step_insns(printer, block, from, to);
	} else {
		print_lines(printer, block, from, to);
		printer->insns += to - from;
	}
}

/* Instructions [from, to) of a block ran; branches among them went to their targets. */
static inline void take_insns(struct printer *printer, struct block *block, unsigned from,
			      unsigned to)
{
	if (printer->config->itrace.instructions && from < to)
		tell_insns(printer, block, from, to);
	else
		printer->insns += to - from;
}

static void print_known_branch(struct printer *printer, struct block *block, unsigned index)
{
	const struct insn *insn = &block->insns[index];

	print_branch_from_insn(printer, block, index,
			       sample_flags_of(insn->class) |
				       context_flags(printer, &printer->context));
	if (index + 1 < block->count)
		print_branch_to_insn(printer, block, index + 1);
	else
		print_branch_to(printer, insn->target);
}

static bool is_context(const struct printer *printer, const struct pt_context *context)
{
	return !memcmp(&printer->context, context, sizeof(*context));
}

static void set_context(struct printer *printer, struct pt_context context)
{
	if (is_context(printer, &context))
		return;
	printer->context = context;
	printer->stale = printer->place_stale = true;
}

/* The line of the branch that waits, as an instruction; its context is the one before. */
static void print_waiting_insn(struct printer *printer, uint32_t flags, uint64_t addr)
{
	struct pt_context after = printer->context;

	if (!printer->branch_period)
		return;
	set_context(printer, printer->branch_context);
	printer->ipc_now = printer->branch_due;
	print_insn(printer, printer->branch_block, printer->branch_index, printer->branch_period,
		   flags, addr);
	printer->ipc_now = false;
	printer->branch_period = 0;
	set_context(printer, after);
}

/* The branch that waits went to where its instruction says, before the context changed. */
static void print_waiting_branch(struct printer *printer)
{
	struct pt_context after = printer->context;
	bool changed = !is_context(printer, &printer->branch_context);

	set_context(printer, printer->branch_context);
	print_known_branch(printer, printer->branch_block, printer->branch_index);
	if (!changed)
		return;
	print_branch_settle(printer);
	set_context(printer, after);
}

/* The branch that waits goes to `ip`; 0: nobody knows. */
static void finish_branch(struct printer *printer, uint64_t ip, uint32_t more_flags)
{
	struct block *block = printer->branch_block;
	const struct insn *insn;
	uint32_t flags;

	if (!block)
		return;
	insn = &block->insns[printer->branch_index];
	flags = sample_flags_of(insn->class) | context_flags(printer, &printer->branch_context) |
		toggle_flag(printer) | more_flags;
	print_waiting_insn(printer, flags, ip);
	printer->branch_block = NULL;
	if (!printer->branches)
		return;
	printer->ipc_now = printer->branch_due;
	if (ip && printer->branch_context.nr != printer->context.nr) {
		print_vm_branch(printer, insn->ip, insn, flags, ip);
	} else {
		print_branch_from_insn(printer, block, printer->branch_index, flags);
		print_branch_to(printer, ip);
	}
	printer->ipc_now = false;
}

/* The branch that waits was an ordinary one, to where its instruction says. */
static void settle_branch(struct printer *printer)
{
	struct block *block = printer->branch_block;
	const struct insn *insn;

	if (!block)
		return;
	insn = &block->insns[printer->branch_index];
	print_waiting_insn(printer,
			   sample_flags_of(insn->class) |
				   context_flags(printer, &printer->branch_context),
			   insn->target);
	printer->ipc_now = printer->branch_due;
	if (insn->target && printer->branches)
		print_waiting_branch(printer);
	printer->ipc_now = false;
	printer->branch_block = NULL;
}

/* Do lines of instructions that are branches have more than can be prepared? */
static bool has_full_branches(const struct print_config *config)
{
	return config->full_insns || config->fields & FIELD_IPC;
}

/* What the branch did comes next. */
static void keep_branch(struct printer *printer, struct block *block, unsigned index)
{
	printer->branch_block = block;
	printer->branch_index = index;
	printer->branch_context = printer->context;
}

/* The last instruction of those that ran, when it is a branch. */
static void wait_for_branch(struct printer *printer, struct block *block, unsigned index)
{
	const struct print_config *config = printer->config;

	if (config->itrace.instructions &&
	    (has_full_branches(config) || config->fields & FIELD_FLAGS ||
	     !prints_every_insn(config))) {
		printer->insns++;
		printer->branch_period = prints_every_insn(config) ? 1 : sample_due(printer);
	} else {
		take_insns(printer, block, index, index + 1);
		printer->branch_period = 0;
	}
	keep_branch(printer, block, index);
}

/* A conditional branch that was not taken: an instruction, but no branch. */
static void pass_condition(struct printer *printer, struct block *block, unsigned index)
{
	const struct print_config *config = printer->config;
	uint64_t period;

	if (!config->itrace.instructions || !has_full_branches(config)) {
		take_insns(printer, block, index, index + 1);
		return;
	}
	period = prints_every_insn(config) ? 1 : sample_due(printer);
	printer->insns++;
	printer->ipc_now = printer->branch_due;
	if (period)
		print_insn(printer, block, index, period,
			   sample_flags_of(INSN_JCC) | context_flags(printer, &printer->context),
			   0);
	printer->ipc_now = false;
}

/* All but the last of the instructions that ran: branches among them are direct and known. */
static void take_known(struct printer *printer, struct block *block, unsigned count)
{
	unsigned from = 0;

	if (printer->branches && !block->straight) {
		for (unsigned i = 0; i < count; i++) {
			if (block->insns[i].class == INSN_PLAIN)
				continue;
			take_insns(printer, block, from, i + 1);
			printer->ipc_now = is_approximate(printer);
			print_known_branch(printer, block, i);
			printer->ipc_now = false;
			from = i + 1;
		}
	}
	take_insns(printer, block, from, count);
}

/* Did a packet tell how the block was left? Only there cycles are known. */
static bool is_decided(const struct flow_item *item)
{
	return item->count == item->block->count && item->block->end != BLOCK_GOES_ON &&
	       item->block->end != BLOCK_NO_CODE;
}

/* The time and the cycles that packets told are those of the branch or event that they are about:
 * what ran before is older. */
static void settle_time(struct printer *printer)
{
	if (printer->told_ns == printer->time_ns && printer->told_cycles == printer->cycles)
		return;
	settle_branch(printer);
	printer->cycles = printer->told_cycles;
	if (printer->told_ns == printer->time_ns)
		return;
	if (printer->told_ns >= printer->record_ns)
		print_origin_of_samples(printer, printer->told_ns);
	printer->time_ns = printer->told_ns;
	printer->stale = true;
}

/* All that ran of a block, one part of it at the time before and the branch at its end at the one
 * that a packet told. */
static void take_parts(struct printer *printer, const struct flow_item *item, bool settles)
{
	struct block *block = item->block;
	unsigned last = item->count - 1;
	bool decided = is_decided(item);

	take_known(printer, block, last);
	if (settles)
		settle_time(printer);
	printer->branch_due = is_approximate(printer) || (printer->cycles_due && decided);
	/* later branches of the same packet ran at some time after these cycles */
	if (decided)
		printer->cycles_due = false;
	if (block->insns[last].class != INSN_JCC || item->flags & FLOW_TAKEN)
		wait_for_branch(printer, block, last);
	else
		pass_condition(printer, block, last);
}

/* The same in one go, where there is nothing to tell them apart. */
static void take_whole(struct printer *printer, const struct flow_item *item)
{
	struct block *block = item->block;
	unsigned last = item->count - 1;

	print_lines(printer, block, 0, item->count);
	printer->insns += item->count;
	printer->branch_period = 0;
	if (block->insns[last].class != INSN_JCC || item->flags & FLOW_TAKEN)
		keep_branch(printer, block, last);
}

static void take_block(struct printer *printer, const struct flow_item *item,
		       const struct flow_item *next)
{
	struct block *block = item->block;
	bool settles = is_decided(item) || (next && next->kind == FLOW_END);

	settle_branch(printer);
	printer->space = block->space;
	print_branch_arrived(printer, block);
	printer->ip = block_ip_after(block, item->count);
	if (!item->count)
		return;
	if (block->ip == printer->where.code->switch_ip && !printer->context.nr)
		prefix_switch(printer);
	if (block->insns[item->count - 1].class == INSN_PLAIN)
		take_known(printer, block, item->count);
	else if (printer->plain && (!settles || printer->told_ns == printer->time_ns))
		take_whole(printer, item);
	else
		take_parts(printer, item, settles);
	if (item->flags & FLOW_TAKEN && block->end == BLOCK_CONDITIONAL &&
	    item->count == block->count)
		printer->ip = block->target;
}

static void arrive_at(struct printer *printer, uint64_t ip)
{
	printer->ip = ip;
	printer->branch_context = printer->context;
}

static void take_to(struct printer *printer, uint64_t ip)
{
	finish_branch(printer, ip, 0);
	arrive_at(printer, ip);
}

/* A branch that is no instruction's. */
static void print_other_branch(struct printer *printer, uint64_t from, uint32_t flags, uint64_t to)
{
	const struct pt_context *before = &printer->branch_context;

	if (!printer->branches)
		return;
	flags |= context_flags(printer, before) | toggle_flag(printer);
	printer->ipc_now = printer->cycles_due || is_approximate(printer);
	printer->cycles_due = false;
	if (from && to && before->nr != printer->context.nr) {
		print_vm_branch(printer, from, NULL, flags, to);
	} else {
		print_branch_from(printer, from, flags);
		print_branch_to(printer, to);
	}
	printer->ipc_now = false;
}

static uint32_t async_flags(struct printer *printer)
{
	bool leaves_guest = printer->branch_context.nr && !printer->context.nr;

	if (printer->aborting)
		return SAMPLE_BRANCH | SAMPLE_TX_ABORT;
	if (leaves_guest)
		return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_VMEXIT;
	return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_INTERRUPT;
}

/* An instruction that no block is known of. */
static void take_ip(struct printer *printer, const struct flow_item *item)
{
	printer->ip = item->value;
	printer->insns++;
	printer->branch_context = printer->context;
	if (!printer->config->itrace.instructions)
		return;
	if (item->flags & FLOW_TAKEN)
		printer->ip_due = true;
	else
		print_bare_insn(printer, item->value, context_flags(printer, &printer->context), 0);
}

/* The line of the instruction that a branch without one is from; its context is the one before. */
static void print_due_ip(struct printer *printer, uint32_t flags, uint64_t addr)
{
	struct pt_context after = printer->context;

	if (!printer->ip_due)
		return;
	printer->ip_due = false;
	set_context(printer, printer->branch_context);
	print_bare_insn(printer, printer->ip,
			flags | context_flags(printer, &printer->branch_context), addr);
	set_context(printer, after);
}

static void take_async(struct printer *printer, uint64_t ip)
{
	uint32_t flags = async_flags(printer);

	settle_branch(printer);
	print_due_ip(printer, flags, ip);
	print_other_branch(printer, printer->ip, flags, ip);
	printer->aborting = false;
	arrive_at(printer, ip);
}

static void take_begin(struct printer *printer, uint64_t ip)
{
	settle_branch(printer);
	prefix_switch(printer); /* tracing begins once the kernel has switched to the thread */
	printer->off = false;
	printer->branch_context = printer->context;
	print_other_branch(printer, 0, SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, ip);
	arrive_at(printer, ip);
}

static void turn_off(struct printer *printer)
{
	printer->off = true;
	printer->in_period = false;
	arrive_at(printer, 0);
}

static void take_end(struct printer *printer, uint64_t ip)
{
	if (printer->branch_block)
		finish_branch(printer, ip, SAMPLE_TRACE_END);
	else
		print_other_branch(printer, printer->ip, SAMPLE_BRANCH | SAMPLE_TRACE_END, ip);
	turn_off(printer);
}

static void take_end_async(struct printer *printer, uint64_t ip)
{
	const uint32_t flags = SAMPLE_BRANCH | SAMPLE_ASYNC | SAMPLE_TRACE_END;

	settle_branch(printer);
	print_due_ip(printer, flags, ip);
	print_other_branch(printer, printer->ip, flags, ip);
	turn_off(printer);
}

static void take_time(struct printer *printer, const struct flow_item *item)
{
	if (item->count)
		settle_branch(printer); /* these cycles came after it */
	printer->cycles_due |= item->count > 0;
	if (!printer->off)
		printer->told_cycles += item->count;
	if (item->value == printer->tsc || printer->config->timeless)
		return;
	settle_branch(printer);
	printer->tsc = item->value;
	printer->told_ns = item->value;
	if (printer->config->pt->conv.valid)
		printer->told_ns = time_conv_ns(&printer->config->pt->conv, item->value);
	printer->since_time = 0;
}

/* What changes with the context and is an event of its own; `next` is the item after it. */
static void tell_changes(struct printer *printer, const struct pt_context *before,
			 const struct flow_item *next)
{
	bool by_branch = next && (next->kind == FLOW_TO || next->kind == FLOW_ASYNC);

	if (before->in_tx != printer->context.in_tx)
		print_transaction(printer);
	if (before->if_clear != printer->context.if_clear && printer->config->pt->have_event_trace)
		print_interrupt_flag(printer, by_branch);
}

static void take_context(struct printer *printer, const struct pt_context *context,
			 const struct flow_item *next)
{
	struct pt_context before = printer->context;

	print_branch_settle(printer); /* its target belongs to the context before */
	if (!printer->branch_block)
		printer->branch_context = printer->context;
	printer->context = *context;
	printer->stale = printer->place_stale = true;
	if (printer->have_context)
		tell_changes(printer, &before, next);
	printer->have_context = true;
}

static void take_gap(struct printer *printer, uint64_t ip)
{
	printer->gaps[printer->gap_kind]++;
	settle_branch(printer);
	print_branch_settle(printer);
	print_gap(printer, ip);
	print_origin_lost(printer);
}

/* What leads up to a PSB is done when it comes. */
static void take_event(struct printer *printer, uint64_t payload)
{
	if (printer->event.count == PT_PSB) {
		settle_branch(printer);
		print_branch_settle(printer);
	}
	print_event(printer, payload);
}

static void take_item(struct printer *printer, const struct flow_batch *batch,
		      const struct flow_item *item, const struct flow_item *next)
{
	if (item->kind != FLOW_BLOCK && item->kind != FLOW_TIME)
		settle_time(printer);
	switch ((enum flow_kind)item->kind) {
	case FLOW_BLOCK: take_block(printer, item, next); break;
	case FLOW_TO: take_to(printer, item->value); break;
	case FLOW_ASYNC: take_async(printer, item->value); break;
	case FLOW_BEGIN: take_begin(printer, item->value); break;
	case FLOW_END: take_end(printer, item->value); break;
	case FLOW_END_ASYNC: take_end_async(printer, item->value); break;
	case FLOW_ABORT: printer->aborting = true; break;
	case FLOW_TIME: take_time(printer, item); break;
	case FLOW_CONTEXT: take_context(printer, &batch->contexts[item->value], next); break;
	case FLOW_GAP:
		printer->gap_kind = (int)item->count;
		printer->gap_position = item->value;
		break;
	case FLOW_AT: take_gap(printer, item->value); break;
	case FLOW_EVENT: printer->event = *item; break;
	case FLOW_VALUE: take_event(printer, item->value); break;
	case FLOW_IP: take_ip(printer, item); break;
	case FLOW_HERE: printer->ip = item->value; break;
	}
}

void printer_print(struct printer *printer, const struct flow_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		take_item(printer, batch, &batch->items[i],
			  i + 1 < batch->count ? &batch->items[i + 1] : NULL);
	settle_branch(printer);
	print_branch_settle(printer);
	prefix_end_run(printer);
}
