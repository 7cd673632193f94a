#include "decode/print/print_line.h"

#include <stdio.h>
#include <string.h>

#include "decode/code/machines.h"
#include "decode/print/print_branch.h"
#include "decode/print/print_origin.h"
#include "decode/print/print_prefix.h"
#include "decode/print/print_waiting.h"
#include "decode/print/sample_flags.h"

uint32_t print_context_flags(const struct printer *printer, const struct pt_context *context)
{
	uint32_t flags = context->in_tx ? SAMPLE_IN_TX : 0;

	if (context->if_clear && printer->config->pt->have_event_trace)
		flags |= SAMPLE_IF_CLEAR;
	return flags;
}

uint32_t print_toggle_flag(const struct printer *printer)
{
	return printer->config->pt->have_event_trace &&
			       printer->branch_context.if_clear != printer->context.if_clear
		       ? SAMPLE_IF_TOGGLE
		       : 0;
}

bool print_set_context(struct printer *printer, struct pt_context context)
{
	if (!memcmp(&printer->context, &context, sizeof(context)))
		return false;
	printer->context = context;
	prefix_outdate(printer);
	return true;
}

void print_set_time(struct printer *printer)
{
	print_waiting_settle(printer);
	printer->ipc.total.cycles = printer->ipc.told_cycles;
	if (printer->told_ns == printer->time_ns)
		return;
	if (printer->told_ns >= printer->sample_ns)
		print_origin_of_samples(printer, printer->told_ns);
	printer->time_ns = printer->told_ns;
	printer->prefix.is_stale = true;
}

void print_refresh(struct printer *printer)
{
	print_branch_settle(printer);
	if (printer->prefix.is_stale)
		prefix_refresh(printer);
}

bool print_begin(struct printer *printer)
{
	print_refresh(printer);
	if (!printer->prefix.is_wanted) {
		printer->has_left_out = true;
		return false;
	}
	if (printer->skip) {
		printer->skip--;
		return false;
	}
	printer->lines++;
	return true;
}

void print_add_prefix(struct printer *printer)
{
	text_add(&printer->out, printer->prefix.text.data, printer->prefix.text.size);
}

void print_add_event(const struct print_config *config, struct text *text, const char *name,
		     uint64_t period)
{
	char full[64];

	if (config->fields & FIELD_PERIOD && period) {
		text_dec(text, period, 10, ' ');
		text_putc(text, ' ');
	}
	if (!(config->fields & FIELD_EVENT))
		return;
	(void)snprintf(full, sizeof(full), "%s%s", name, config->modifier);
	text_right(text, full, config->name_width);
	text_puts(text, ": ");
}

static void add_part(struct printer *printer, const struct block_text *text, uint32_t from,
		     uint32_t to)
{
	text_add(&printer->out, text->lines + from, to - from);
}

void print_prepared(struct printer *printer, const char *lines, const uint32_t *offsets,
		    unsigned from, unsigned to)
{
	size_t prefix_size = printer->prefix.text.size;
	size_t size = offsets[to] - offsets[from] + (to - from) * prefix_size;
	char *out;

	printer->lines += to - from - 1;
	if (!text_reserve(&printer->out, size))
		return;
	out = printer->out.data + printer->out.size;
	printer->out.size += size;
	if (!prefix_size) {
		memcpy(out, lines + offsets[from], size);
		return;
	}
	for (unsigned i = from; i < to; i++) {
		size_t length = offsets[i + 1] - offsets[i];

		memcpy(out, printer->prefix.text.data, prefix_size);
		memcpy(out + prefix_size, lines + offsets[i], length);
		out += prefix_size + length;
	}
}

void print_lines(struct printer *printer, struct block *block, unsigned from, unsigned to)
{
	const struct block_text *text =
		block_lines(block, &printer->config->style, printer->where.code);

	if (text && from < to && print_begin(printer))
		print_prepared(printer, text->lines, text->offsets, from, to);
}

struct code_space *print_space(struct printer *printer, uint64_t ip)
{
	const struct machines *machines = printer->where.code->machines;
	struct machine *machine = machines->host;

	if (!ip)
		return NULL;
	if (printer->context.nr)
		machine = machines_guest(machines, printer->thread.pid);
	return code_space_get(printer->where.code, machine, printer->thread.pid, ip,
			      printer->context.bits);
}

void print_add_address(struct printer *printer, const struct code_space *space, uint64_t ip)
{
	struct symbol_view symbol;

	text_putc(&printer->out, ' ');
	text_hex(&printer->out, ip, 16);
	symbol = address_symbol(space, ip, printer->time_ns);
	symbol_text(&printer->out, &symbol, printer->config->fields);
}

/* Append all but what only code can tell. */
static void begin_insn(struct printer *printer, uint64_t period, uint32_t flags, uint64_t addr)
{
	print_add_event_prefix(printer);
	print_add_event(printer->config, &printer->out, "instructions", period);
	if (printer->config->fields & FIELD_FLAGS)
		sample_flags_text(&printer->out, flags);
	if (printer->config->insn_addr)
		text_hex(&printer->out, addr, 16);
}

void print_add_insn_at(struct printer *printer, struct code_space *space, uint64_t ip)
{
	const struct block_style *style = &printer->config->style;
	const struct block *block = NULL;

	if (!(style->fields & (FIELD_INSN | FIELD_INSNLEN | FIELD_DISASM)))
		return;
	if (space)
		block = block_get(printer->where.code, space, ip, printer->time_ns);
	if (block && block->count)
		insn_text(&printer->out, block->insns, space, style);
	else if (style->fields & FIELD_INSNLEN)
		text_puts(&printer->out, " ilen: 0");
}

void print_bare_insn(struct printer *printer, uint64_t ip, uint32_t flags, uint64_t addr)
{
	struct code_space *space;

	if (!print_begin(printer))
		return;
	space = print_space(printer, ip);
	begin_insn(printer, 1, flags, addr);
	print_add_origin(printer, space, ip);
	print_add_insn_at(printer, space, ip);
	text_putc(&printer->out, '\n');
}

/* What is prepared of an instruction up to its address holds, if nothing else is asked for and it
 * is as ever. */
static bool has_prepared_head(const struct printer *printer, const struct insn *insn,
			      uint32_t flags)
{
	const struct print_config *config = printer->config;

	return !config->full_insns &&
	       (!(config->fields & FIELD_FLAGS) || flags == sample_flags_of(insn->class));
}

/* Where every instruction has a line, those of a block are prepared together. */
static const struct block_text *prepared_lines(struct printer *printer, struct block *block)
{
	const struct print_config *config = printer->config;

	return prints_every_insn(config) ? block_lines(block, &config->style, printer->where.code)
					 : NULL;
}

void print_insn(struct printer *printer, struct block *block, unsigned index, uint64_t period,
		uint32_t flags, uint64_t addr)
{
	const struct insn *insn = &block->insns[index];
	const struct block_text *text;
	struct ipc_count ipc;

	if (!print_begin(printer))
		return;
	text = prepared_lines(printer, block);
	if (text && has_prepared_head(printer, insn, flags)) {
		print_add_prefix(printer);
		add_part(printer, text, text->offsets[index], text->insns[index]);
	} else {
		begin_insn(printer, period, flags, addr);
		print_add_origin(printer, block->space, insn->ip);
	}
	if (text)
		add_part(printer, text, text->insns[index], text->offsets[index + 1] - 1);
	else
		insn_text(&printer->out, insn, block->space, &printer->config->style);
	if (printer->config->fields & FIELD_IPC) {
		ipc = ipc_take(&printer->ipc, &printer->ipc.at_insn);
		ipc_text(&printer->out, &ipc);
	}
	text_putc(&printer->out, '\n');
}
