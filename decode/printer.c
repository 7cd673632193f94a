#include "decode/printer.h"

#include <stdio.h>

#include "decode/base/vec.h"
#include "decode/print_line.h"
#include "decode/print_prefix.h"
#include "decode/sample_flags.h"

void printer_init(struct printer *printer, const struct print_config *config,
		  const struct aux_queue *queue, const struct flow_code *where)
{
	*printer = (struct printer){ .config = config, .queue = queue, .where = *where };
	printer->context = pt_context_unknown();
	printer->pid = queue->pid;
	printer->tid = queue->tid;
	printer->stale = printer->place_stale = true;
	printer->skip = config->itrace.skip;
	printer->until_sample = config->itrace.period;
}

void printer_free(struct printer *printer)
{
	text_free(&printer->out);
	text_free(&printer->prefix);
	for (int i = 0; i < BRANCH_LEADS; i++)
		text_free(&printer->leads[i].text);
	vec_free(&printer->runs);
}

/* Prepared text of one block as a line each, with the prefix. */
static void print_lines(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	const struct block_text *text =
		block_lines(block, &printer->config->style, &printer->where.code->arena);
	size_t prefix_size, size;
	char *out;

	if (!text || from >= to || !print_begin(printer))
		return;
	prefix_size = printer->prefix.size;
	size = text->offsets[to] - text->offsets[from] + (to - from) * prefix_size;
	printer->lines += to - from - 1; /* one is counted already */
	if (!text_reserve(&printer->out, size))
		return;
	out = printer->out.data + printer->out.size;
	printer->out.size += size;
	if (!prefix_size) {
		memcpy(out, text->lines + text->offsets[from], size);
		return;
	}
	for (unsigned i = from; i < to; i++) {
		size_t length = text->offsets[i + 1] - text->offsets[i];

		memcpy(out, printer->prefix.data, prefix_size);
		memcpy(out + prefix_size, text->lines + text->offsets[i], length);
		out += prefix_size + length;
	}
}

/* Every n-th instruction, or the first after a time; the number since the last is the period. */
static void print_samples(struct printer *printer, const struct block *block, unsigned count)
{
	const struct itrace *itrace = &printer->config->itrace;

	for (unsigned i = 0; i < count; i++) {
		bool due;

		printer->since_sample++;
		if (itrace->period_unit == PERIOD_INSNS)
			due = --printer->until_sample == 0;
		else
			due = printer->time_ns >= printer->next_sample_ns;
		if (!due)
			continue;
		print_sample(printer, block, i, printer->since_sample);
		printer->since_sample = 0;
		printer->until_sample = itrace->period;
		printer->next_sample_ns = printer->time_ns + itrace->period;
	}
}

static bool prints_every_insn(const struct print_config *config)
{
	return config->itrace.period_unit == PERIOD_INSNS ? config->itrace.period <= 1
							  : !config->itrace.period;
}

static void print_insns(struct printer *printer, struct block *block, unsigned count, bool taken)
{
	const struct print_config *config = printer->config;

	if (!prints_every_insn(config) || printer->skip) {
		print_samples(printer, block, count);
		return;
	}
	if (config->insn_addr || config->fields & FIELD_IPC)
		for (unsigned i = 0; i < count; i++)
			print_full_insn(printer, block, i, taken);
	else
		print_lines(printer, block, 0, count);
}

static uint32_t branch_flags(const struct printer *printer, const struct insn *insn)
{
	return sample_flags_of(insn->class) | (printer->context.in_tx ? SAMPLE_IN_TX : 0);
}

static void print_known_branch(struct printer *printer, struct block *block, unsigned index)
{
	const struct insn *insn = &block->insns[index];

	print_branch_from_insn(printer, block, index, branch_flags(printer, insn));
	if (index + 1 < block->count)
		print_branch_to_insn(printer, block, index + 1);
	else
		print_branch_to(printer, insn->target);
}

/* The branch that waits was an ordinary one, to where its instruction says. */
static void settle_branch(struct printer *printer)
{
	struct block *block = printer->branch_block;

	printer->branch_block = NULL;
	if (block && block->insns[printer->branch_index].target)
		print_known_branch(printer, block, printer->branch_index);
}

static void print_branches(struct printer *printer, struct block *block, unsigned count, bool taken)
{
	unsigned last = count - 1;

	if (!count)
		return;
	for (unsigned i = 0; i < last; i++)
		if (block->insns[i].class != INSN_PLAIN)
			print_known_branch(printer, block, i);
	if (block->insns[last].class == INSN_PLAIN ||
	    (block->insns[last].class == INSN_JCC && !taken))
		return;
	printer->branch_block = block;
	printer->branch_index = last;
	printer->branch_context = printer->context;
}

static bool prints_branches(const struct print_config *config)
{
	return config->itrace.branches || config->itrace.calls || config->itrace.returns;
}

static void take_block(struct printer *printer, const struct flow_item *item)
{
	struct block *block = item->block;
	bool taken = item->flags & FLOW_TAKEN;

	settle_branch(printer);
	printer->space = block->space;
	print_branch_arrived(printer, block);
	printer->insns += item->count;
	if (printer->config->itrace.instructions)
		print_insns(printer, block, item->count, taken);
	if (prints_branches(printer->config))
		print_branches(printer, block, item->count, taken);
	printer->ip = block_ip_after(block, item->count);
	if (taken && block->end == BLOCK_CONDITIONAL && item->count == block->count)
		printer->ip = block->target;
}

/* The branch that waits goes to `ip`; 0: nobody knows. */
static void finish_branch(struct printer *printer, uint64_t ip, uint32_t more_flags)
{
	struct block *block = printer->branch_block;
	const struct insn *insn;
	uint32_t flags;

	printer->branch_block = NULL;
	if (!block)
		return;
	insn = &block->insns[printer->branch_index];
	flags = branch_flags(printer, insn) | more_flags;
	if (ip && printer->branch_context.nr != printer->context.nr) {
		print_vm_branch(printer, insn->ip, insn, flags, ip);
		return;
	}
	print_branch_from_insn(printer, block, printer->branch_index, flags);
	print_branch_to(printer, ip);
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

static uint32_t async_flags(struct printer *printer)
{
	bool leaves_guest = printer->branch_context.nr && !printer->context.nr;

	if (printer->aborting)
		return SAMPLE_BRANCH | SAMPLE_TX_ABORT;
	if (leaves_guest)
		return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_VMEXIT;
	return SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_INTERRUPT;
}

static void take_async(struct printer *printer, uint64_t ip)
{
	uint32_t flags = async_flags(printer);

	settle_branch(printer);
	if (printer->branch_context.nr != printer->context.nr) {
		print_vm_branch(printer, printer->ip, NULL, flags, ip);
	} else {
		print_branch_from(printer, printer->ip, flags);
		print_branch_to(printer, ip);
	}
	printer->aborting = false;
	arrive_at(printer, ip);
}

static void take_begin(struct printer *printer, uint64_t ip)
{
	settle_branch(printer);
	print_branch_from(printer, 0, SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN);
	print_branch_to(printer, ip);
	arrive_at(printer, ip);
}

static void take_end(struct printer *printer, uint64_t ip)
{
	if (printer->branch_block) {
		finish_branch(printer, ip, SAMPLE_TRACE_END);
	} else {
		print_branch_from(printer, printer->ip, SAMPLE_BRANCH | SAMPLE_TRACE_END);
		print_branch_to(printer, ip);
	}
	arrive_at(printer, 0);
}

static void take_end_async(struct printer *printer, uint64_t ip)
{
	settle_branch(printer);
	print_branch_from(printer, printer->ip, SAMPLE_BRANCH | SAMPLE_ASYNC | SAMPLE_TRACE_END);
	print_branch_to(printer, ip);
	arrive_at(printer, 0);
}

static void take_time(struct printer *printer, const struct flow_item *item)
{
	printer->cycles += item->count;
	if (item->value == printer->tsc)
		return;
	settle_branch(printer);
	printer->tsc = item->value;
	printer->time_ns = printer->config->pt->conv.valid
				   ? time_conv_ns(&printer->config->pt->conv, item->value)
				   : item->value;
	printer->stale = true;
}

static void take_context(struct printer *printer, const struct pt_context *context)
{
	print_branch_settle(printer); /* its target belongs to the context before */
	if (!printer->branch_block)
		printer->branch_context = printer->context;
	printer->context = *context;
	printer->stale = printer->place_stale = true;
}

static void take_gap(struct printer *printer, uint64_t ip)
{
	printer->gaps[printer->gap_kind]++;
	settle_branch(printer);
	print_gap(printer, ip);
}

static void take_item(struct printer *printer, const struct flow_batch *batch,
		      const struct flow_item *item)
{
	switch ((enum flow_kind)item->kind) {
	case FLOW_BLOCK: take_block(printer, item); break;
	case FLOW_TO: take_to(printer, item->value); break;
	case FLOW_ASYNC: take_async(printer, item->value); break;
	case FLOW_BEGIN: take_begin(printer, item->value); break;
	case FLOW_END: take_end(printer, item->value); break;
	case FLOW_END_ASYNC: take_end_async(printer, item->value); break;
	case FLOW_ABORT: printer->aborting = true; break;
	case FLOW_TIME: take_time(printer, item); break;
	case FLOW_CONTEXT: take_context(printer, &batch->contexts[item->value]); break;
	case FLOW_GAP:
		printer->gap_kind = (int)item->count;
		printer->gap_position = item->value;
		break;
	case FLOW_AT: take_gap(printer, item->value); break;
	case FLOW_EVENT: printer->event = *item; break;
	case FLOW_VALUE: print_event(printer, item->value); break;
	}
}

void printer_print(struct printer *printer, const struct flow_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		take_item(printer, batch, &batch->items[i]);
	settle_branch(printer);
	print_branch_settle(printer);
	prefix_end_run(printer);
}
