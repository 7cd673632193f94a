#include "decode/print/print_branch.h"

#include "decode/print/branch_text.h"
#include "decode/print/print_line.h"
#include "decode/print/print_origin.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"

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

/* Is a branch of any use: for a line, or for the depth of other lines? */
static bool begin(struct printer *printer, uint32_t flags)
{
	struct branch_line *line = &printer->line;
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
	line->parts = NULL;
	line->insn = NULL;
	line->to_ip = 0;
	line->ipc = (struct ipc_count){ 0 };
	if (wanted && printer->config->fields & FIELD_IPC)
		line->ipc = ipc_take(&printer->ipc, &printer->ipc.at_branch);
	return true;
}

/* An address in the present context. */
static struct branch_place place_at(struct printer *printer, uint64_t ip)
{
	return (struct branch_place){ .ip = ip, .space = print_space(printer, ip) };
}

/* An instruction of a block, with its text; `end` NULL: there is none. */
static struct branch_place place_in(const struct block *block, unsigned index, const char *text,
				    const struct branch_end *end)
{
	return (struct branch_place){
		.ip = block->insns[index].ip, .space = block->space, .text = text, .end = end
	};
}

static void add_part(struct printer *printer, const char *text, uint32_t from, uint32_t to)
{
	text_add(&printer->out, text + from, to - from);
}

static void add_range(struct printer *printer, const char *text, struct text_range range)
{
	add_part(printer, text, range.from, range.to);
}

static struct symbol_view symbol_of(const struct printer *printer, const struct branch_place *place)
{
	return address_symbol(place->space, place->ip, printer->time_ns);
}

static void add_place(struct printer *printer, const struct branch_place *place)
{
	struct symbol_view symbol;

	if (place->end) {
		add_range(printer, place->text, place->end->place);
	} else {
		symbol = symbol_of(printer, place);
		branch_add_place(&printer->out, place->ip, &symbol, printer->config->fields);
	}
}

static void add_name(struct printer *printer, const struct branch_place *place)
{
	struct symbol_view symbol;

	if (place->end) {
		add_range(printer, place->text, place->end->name);
	} else {
		symbol = symbol_of(printer, place);
		branch_add_name(&printer->out, place->ip, &symbol);
	}
}

static void add_indent_dso(struct printer *printer)
{
	const struct branch_line *line = &printer->line;

	if (line->parts)
		add_range(printer, line->from.text, line->parts->dso);
	else
		branch_add_dso(&printer->out, symbol_of(printer, &line->from).dso,
			       printer->config->dso_width);
}

/* Fill up so that what follows does not jump from column to column: the width grows at once, and
 * shrinks when it is far too much. */
static void fill_up(struct printer *printer, size_t length)
{
	enum { STEP = 32, FAR_TOO_MUCH = 52 };

	if (length > printer->indent_width ||
	    (length && length + FAR_TOO_MUCH < printer->indent_width))
		printer->indent_width = (unsigned)(length + 4 + STEP - 1) / STEP * STEP;
	if (length < printer->indent_width)
		text_fill(&printer->out, ' ', printer->indent_width - length);
}

/* A call shows where it goes, a return where it comes from. */
static void add_call_indent(struct printer *printer, const struct branch_place *to, unsigned depth)
{
	const struct branch_line *line = &printer->line;
	uint32_t fields = printer->config->fields;
	const struct branch_place *place = NULL;
	size_t start;

	if (fields & FIELD_DSO && !(fields & (FIELD_IP | FIELD_ADDR)))
		add_indent_dso(printer);
	if (line->flags & (SAMPLE_CALL | SAMPLE_TRACE_BEGIN))
		place = to;
	else if (line->flags & (SAMPLE_RETURN | SAMPLE_TRACE_END))
		place = &line->from;
	start = printer->out.size;
	if (place && place->ip) {
		text_fill(&printer->out, ' ', (size_t)4 * depth);
		add_name(printer, place);
	}
	fill_up(printer, printer->out.size - start);
}

/* The depth of the line in its thread and on its side. */
static unsigned follow_calls(struct printer *printer, uint64_t to)
{
	const struct branch_line *line = &printer->line;
	uint64_t next = line->insn ? insn_next(line->insn) : line->from.ip;
	struct call_stack *stack = call_stack_of(&printer->calls, printer->thread.tid, line->guest);
	const struct branch_entry branch = { line->from.ip, to, 0, line->guest, line->guest };

	if (!stack)
		return 0;
	/* a branch between host and guest shows both ends */
	if (!(line->flags & (SAMPLE_VMENTRY | SAMPLE_VMEXIT)) || (line->from.ip && to))
		print_origin_branch(printer, &branch, line->flags);
	call_stack_follow(stack, line->flags, line->from.ip, next, to);
	return stack->depth + !!(line->flags & SAMPLE_RETURN); /* it is popped already */
}

/* All up to the target. */
static void add_source(struct printer *printer, const struct branch_place *to, unsigned depth)
{
	const struct branch_line *line = &printer->line;
	const struct branch_parts *parts = line->parts;
	uint32_t fields = printer->config->fields;
	const struct text *lead;

	if (parts && parts->flags == line->flags && !(fields & FIELD_CALLINDENT)) {
		add_part(printer, line->from.text, parts->line, parts->target.place.from);
		return;
	}
	lead = branch_lead(printer, line->flags);
	text_add(&printer->out, lead->data, lead->size);
	if (fields & FIELD_CALLINDENT)
		add_call_indent(printer, to, depth);
	if (fields & FIELD_IP) {
		text_putc(&printer->out, ' ');
		add_place(printer, &line->from);
	}
	if (fields & FIELD_ADDR)
		text_puts(&printer->out, " => ");
}

/* All behind the target. */
static void add_insn(struct printer *printer)
{
	const struct branch_line *line = &printer->line;

	ipc_text(&printer->out, &line->ipc);
	if (line->parts) {
		add_part(printer, line->from.text, line->parts->insn, line->parts->end);
		return;
	}
	if (line->insn)
		insn_text(&printer->out, line->insn, line->insn_space, &printer->config->style);
	else
		print_add_insn_at(printer, line->from.space, line->from.ip);
	text_putc(&printer->out, '\n');
}

static void end(struct printer *printer, const struct branch_place *to)
{
	struct branch_line *line = &printer->line;
	unsigned depth = 0;

	line->open = false;
	if (follows_branches(printer->config))
		depth = follow_calls(printer, to->ip);
	if (!line->wanted)
		return;
	print_add_prefix(printer);
	add_source(printer, to, depth);
	if (printer->config->fields & FIELD_ADDR)
		add_place(printer, to);
	add_insn(printer);
}

void print_branch_from_insn(struct printer *printer, struct block *block, unsigned index,
			    uint32_t flags)
{
	struct branch_line *line = &printer->line;
	const struct branch_text *text;

	if (!begin(printer, flags))
		return;
	text = branch_text(printer, block);
	line->parts = branch_parts_at(text, index);
	line->from = place_in(block, index, text ? text->lines : NULL,
			      line->parts ? &line->parts->source : NULL);
	line->insn = &block->insns[index];
	line->insn_space = block->space;
}

void print_branch_from(struct printer *printer, uint64_t ip, uint32_t flags)
{
	if (begin(printer, flags))
		printer->line.from = place_at(printer, ip);
}

void print_branch_to(struct printer *printer, uint64_t ip)
{
	printer->line.to_ip = ip;
}

void print_branch_settle(struct printer *printer)
{
	struct branch_place to;

	if (!printer->line.open)
		return;
	to = place_at(printer, printer->line.to_ip);
	end(printer, &to);
}

/* Complete the line: the target is where the block begins. */
static void end_at_block(struct printer *printer, struct block *block)
{
	const struct branch_text *text = branch_text(printer, block);
	struct branch_place to =
		place_in(block, 0, text ? text->lines : NULL, text ? &text->start : NULL);

	end(printer, &to);
}

void print_branch_within(struct printer *printer, struct block *block, unsigned index,
			 uint32_t flags)
{
	const struct branch_line *line = &printer->line;
	struct branch_place to;

	print_branch_from_insn(printer, block, index, flags);
	if (!line->open)
		return;
	to = place_in(block, index + 1, line->from.text, line->parts ? &line->parts->target : NULL);
	end(printer, &to);
}

bool print_branches_within(struct printer *printer, struct block *block, unsigned count)
{
	const struct branch_text *text = branch_text(printer, block);
	unsigned lines = text ? text->known : 0;

	while (lines && text->branches[lines - 1].index >= count)
		lines--;
	if (lines && print_begin(printer))
		print_prepared(printer, text->lines, text->offsets, 0, lines);
	return text;
}

bool print_branch_between(struct printer *printer, struct block *block, unsigned index,
			  struct block *to)
{
	const struct branch_text *text = branch_text(printer, block);
	const struct branch_text *target = branch_text(printer, to);
	const struct branch_parts *parts = branch_parts_at(text, index);

	if (!parts || !target)
		return false;
	if (!print_begin(printer))
		return true;
	print_add_prefix(printer);
	add_part(printer, text->lines, parts->line, parts->target.place.from);
	add_range(printer, target->lines, target->start.place);
	add_part(printer, text->lines, parts->insn, parts->end);
	return true;
}

void print_branch_arrived(struct printer *printer, struct block *block)
{
	if (!printer->line.open)
		return;
	if (printer->line.to_ip == block->ip && block->count)
		end_at_block(printer, block);
	else
		print_branch_settle(printer);
}

static void vm_half(struct printer *printer, uint64_t from, const struct insn *insn, uint32_t flags,
		    uint64_t to)
{
	prefix_outdate(printer);
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
