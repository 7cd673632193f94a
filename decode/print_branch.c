#include "decode/print_branch.h"

#include "decode/print_line.h"
#include "decode/print_origin.h"
#include "decode/sample_flags.h"

/* --itrace=c and r let only calls and returns through, with what begins and ends them in the trace.
 */
static bool passes_filter(const struct itrace *itrace, uint32_t flags)
{
	uint32_t filter = 0;

	if (itrace->calls)
		filter |= SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_TRACE_END;
	if (itrace->returns)
		filter |= SAMPLE_RETURN | SAMPLE_TRACE_BEGIN;
	return filter ? flags & filter : itrace->branches;
}

static void make_lead(const struct print_config *config, struct branch_lead *lead, uint32_t flags)
{
	lead->flags = flags;
	lead->text.size = 0;
	print_add_event(config, &lead->text, "branches", 1);
	if (config->fields & FIELD_FLAGS)
		sample_flags_text(&lead->text, flags);
}

/* Period, event and flags, up to the address: made once for each kind of branch. */
static void add_lead(struct printer *printer, uint32_t flags)
{
	struct branch_lead *lead = printer->leads;

	while (lead->flags != flags && lead->flags && lead < printer->leads + BRANCH_LEADS - 1)
		lead++;
	if (lead->flags != flags)
		make_lead(printer->config, lead, flags);
	text_add(&printer->out, lead->text.data, lead->text.size);
}

/* Is a branch of any use: for a line, or for the depth of other lines? */
static bool begin(struct printer *printer, uint32_t flags)
{
	struct branch_line *line = &printer->line;
	uint32_t fields = printer->config->fields;
	bool wanted;

	print_branch_settle(printer);
	wanted = passes_filter(&printer->config->itrace, flags) && print_begin(printer);
	if (!wanted && !follows_branches(printer->config))
		return false;
	print_refresh(printer);
	line->open = true;
	line->wanted = wanted;
	line->guest = printer->context.nr;
	line->flags = flags;
	line->insn = NULL;
	line->to_ip = 0;
	line->ipc_cycles = 0;
	if (!wanted)
		return true;
	print_add_prefix(printer);
	add_lead(printer, flags);
	if (fields & FIELD_IPC)
		print_take_ipc(printer, &printer->branch_ipc, &line->ipc_insns, &line->ipc_cycles);
	return true;
}

static struct branch_place place_in(struct printer *printer, struct block *block, unsigned index)
{
	const struct print_config *config = printer->config;
	const struct block_text *text = NULL;

	if (config->fields & (FIELD_IP | FIELD_ADDR | FIELD_CALLINDENT))
		text = block_addresses(block, &config->style, &printer->where.code->arena);
	return (struct branch_place){
		.ip = block->insns[index].ip, .text = text, .index = index, .space = block->space
	};
}

/* An address in the present context. */
static struct branch_place place_at(struct printer *printer, uint64_t ip)
{
	return (struct branch_place){ .ip = ip, .space = print_space(printer, ip) };
}

static struct symbol_view symbol_of(const struct printer *printer, const struct branch_place *place)
{
	if (place->text)
		return place->text->symbols[place->index];
	return address_symbol(place->space, place->ip, printer->time_ns);
}

static void add_place(struct printer *printer, const struct branch_place *place)
{
	const struct block_text *text = place->text;
	struct symbol_view symbol;

	if (text) {
		text_add(&printer->out, text->lines + text->offsets[place->index],
			 text->offsets[place->index + 1] - text->offsets[place->index]);
		return;
	}
	text_hex(&printer->out, place->ip, 16);
	symbol = symbol_of(printer, place);
	symbol_text(&printer->out, &symbol, printer->config->fields);
}

static void add_indent_dso(struct printer *printer, const char *dso)
{
	size_t from = printer->out.size;

	text_puts(&printer->out, "(");
	text_left(&printer->out, dso ? dso : "[unknown]", printer->config->dso_width);
	text_printable(&printer->out, from);
	text_puts(&printer->out, ")\t");
}

/* Fill up so that what follows does not jump from column to column: the width grows at once, and
 * shrinks when it is far too much. */
static void fill_up(struct printer *printer, size_t length)
{
	enum { STEP = 32, FAR_TOO_MUCH = 52 };

	if (length > printer->indent_width ||
	    (length && length + FAR_TOO_MUCH < printer->indent_width))
		printer->indent_width = (unsigned)(length + 4 + STEP - 1) / STEP * STEP;
	for (; length < printer->indent_width && !printer->out.failed; length++)
		text_putc(&printer->out, ' ');
}

/* A call shows where it goes, a return where it comes from. */
static void add_call_indent(struct printer *printer, const struct branch_place *to, unsigned depth)
{
	const struct branch_line *line = &printer->line;
	uint32_t fields = printer->config->fields;
	const struct branch_place *place = NULL;
	struct symbol_view symbol;
	size_t start;

	if (fields & FIELD_DSO && !(fields & (FIELD_IP | FIELD_ADDR)))
		add_indent_dso(printer, symbol_of(printer, &line->from).dso);
	if (line->flags & (SAMPLE_CALL | SAMPLE_TRACE_BEGIN))
		place = to;
	else if (line->flags & (SAMPLE_RETURN | SAMPLE_TRACE_END))
		place = &line->from;
	start = printer->out.size;
	if (place && place->ip) {
		text_right(&printer->out, "", 4 * depth);
		symbol = symbol_of(printer, place);
		if (symbol.name)
			text_name(&printer->out, symbol.name);
		else
			text_hex(&printer->out, place->ip, 16);
	}
	fill_up(printer, printer->out.size - start);
}

/* The depth of the line in its thread and on its side. */
static unsigned follow_calls(struct printer *printer, uint64_t to)
{
	const struct branch_line *line = &printer->line;
	uint64_t next = line->insn ? insn_next(line->insn) : line->from.ip;
	struct call_stack *stack = call_stack_of(&printer->calls, printer->tid, line->guest);
	const struct branch_entry branch = { line->from.ip, to, 0, line->guest, line->guest };

	if (!stack)
		return 0;
	/* a branch between host and guest shows both ends */
	if (!(line->flags & (SAMPLE_VMENTRY | SAMPLE_VMEXIT)) || (line->from.ip && to))
		print_origin_branch(printer, &branch, line->flags);
	call_stack_follow(stack, line->flags, line->from.ip, next, to);
	return stack->depth + !!(line->flags & SAMPLE_RETURN); /* it is popped already */
}

static void add_insn(struct printer *printer)
{
	const struct branch_line *line = &printer->line;

	if (line->insn)
		insn_text(&printer->out, line->insn, line->insn_space, &printer->config->style);
	else if (printer->config->fields & FIELD_INSNLEN)
		text_puts(&printer->out, " ilen: 0");
}

static void end(struct printer *printer, const struct branch_place *to)
{
	struct branch_line *line = &printer->line;
	uint32_t fields = printer->config->fields;
	unsigned depth = 0;

	line->open = false;
	if (follows_branches(printer->config))
		depth = follow_calls(printer, to->ip);
	if (!line->wanted)
		return;
	if (fields & FIELD_CALLINDENT)
		add_call_indent(printer, to, depth);
	if (fields & FIELD_IP) {
		text_putc(&printer->out, ' ');
		add_place(printer, &line->from);
	}
	if (fields & FIELD_ADDR) {
		text_puts(&printer->out, " => ");
		add_place(printer, to);
	}
	print_add_ipc(&printer->out, line->ipc_insns, line->ipc_cycles);
	if (fields & (FIELD_INSN | FIELD_INSNLEN | FIELD_DISASM))
		add_insn(printer);
	text_putc(&printer->out, '\n');
}

void print_branch_from_insn(struct printer *printer, struct block *block, unsigned index,
			    uint32_t flags)
{
	if (!begin(printer, flags))
		return;
	printer->line.from = place_in(printer, block, index);
	printer->line.insn = &block->insns[index];
	printer->line.insn_space = block->space;
}

void print_branch_from(struct printer *printer, uint64_t ip, uint32_t flags)
{
	if (begin(printer, flags))
		printer->line.from = place_at(printer, ip);
}

void print_branch_to(struct printer *printer, uint64_t ip)
{
	printer->line.to_ip = ip;
	if (!ip)
		print_branch_settle(printer);
}

void print_branch_settle(struct printer *printer)
{
	struct branch_place to;

	if (!printer->line.open)
		return;
	to = place_at(printer, printer->line.to_ip);
	end(printer, &to);
}

void print_branch_to_insn(struct printer *printer, struct block *block, unsigned index)
{
	struct branch_place to;

	if (!printer->line.open)
		return;
	to = place_in(printer, block, index);
	end(printer, &to);
}

void print_branch_arrived(struct printer *printer, struct block *block)
{
	if (!printer->line.open)
		return;
	if (printer->line.to_ip == block->ip && block->count)
		print_branch_to_insn(printer, block, 0);
	else
		print_branch_settle(printer);
}

static void vm_half(struct printer *printer, uint64_t from, const struct insn *insn, uint32_t flags,
		    uint64_t to)
{
	printer->stale = printer->place_stale = true;
	print_branch_from(printer, from, flags);
	printer->line.insn = insn;
	printer->line.insn_space = printer->space;
	print_branch_to(printer, to);
}

void print_vm_branch(struct printer *printer, uint64_t from, const struct insn *insn,
		     uint32_t flags, uint64_t to)
{
	struct pt_context after = printer->context;
	const struct branch_entry branch = { from, to, 0, printer->branch_context.nr, after.nr };

	printer->context = printer->branch_context;
	vm_half(printer, from, insn, flags, 0);
	printer->context = after;
	vm_half(printer, 0, insn, flags, to);
	print_branch_settle(printer);
	print_origin_branch(printer, &branch, flags);
}
