#include "decode/print_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "decode/base/vec.h"
#include "decode/print_prefix.h"
#include "decode/sample_flags.h"

bool print_begin(struct printer *printer)
{
	print_branch_settle(printer);
	if (printer->stale)
		prefix_refresh(printer);
	if (!printer->wanted)
		return false;
	if (printer->skip) {
		printer->skip--;
		return false;
	}
	printer->lines++;
	return true;
}

static void add_prefix(struct printer *printer)
{
	text_add(&printer->out, printer->prefix.data, printer->prefix.size);
}

/* Period and event name, in the columns of perf. */
static void add_event(const struct print_config *config, struct text *text, const char *name,
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

static void add_ipc(struct printer *printer)
{
	uint64_t insns = printer->insns - printer->last_insns;
	uint64_t cycles = printer->cycles - printer->last_cycles;
	char line[96];

	if (!(printer->config->fields & FIELD_IPC) || !cycles)
		return;
	(void)snprintf(line, sizeof(line), " \t IPC: %" PRIu64 ".%02" PRIu64 " (%" PRIu64 "/%" PRIu64 ") ",
		       insns / cycles, insns * 100 / cycles % 100, insns, cycles);
	text_puts(&printer->out, line);
	printer->last_insns = printer->insns;
	printer->last_cycles = printer->cycles;
}

static void add_address(struct printer *printer, struct code_space *space, uint64_t ip)
{
	if (!(printer->config->fields & FIELD_IP))
		return;
	text_hex(&printer->out, ip, 16);
	address_text(&printer->out, space, ip, printer->time_ns, printer->config->fields);
}

static uint64_t insn_addr(const struct block *block, unsigned index, bool taken)
{
	const struct insn *insn = &block->insns[index];

	if (insn->class == INSN_JCC && !taken)
		return 0;
	if (insn->target)
		return insn->target;
	return 0;
}

static void add_insn_line(struct printer *printer, const struct block *block, unsigned index,
			  uint64_t period, uint64_t addr)
{
	const struct insn *insn = &block->insns[index];
	uint32_t fields = printer->config->fields;

	add_prefix(printer);
	add_event(printer->config, &printer->out, "instructions", period);
	if (fields & FIELD_FLAGS)
		sample_flags_text(&printer->out, sample_flags_of(insn->class));
	if (printer->config->insn_addr)
		text_hex(&printer->out, addr, 16);
	if (fields & FIELD_IP)
		text_putc(&printer->out, ' ');
	add_address(printer, block->space, insn->ip);
	add_ipc(printer);
	insn_text(&printer->out, insn, block->space, &printer->config->style);
	text_putc(&printer->out, '\n');
}

void print_sample(struct printer *printer, const struct block *block, unsigned index,
		  uint64_t period)
{
	if (print_begin(printer))
		add_insn_line(printer, block, index, period, 0);
}

void print_full_insn(struct printer *printer, const struct block *block, unsigned index, bool taken)
{
	if (print_begin(printer))
		add_insn_line(printer, block, index, 1, insn_addr(block, index, taken));
}

/* --itrace=c and r let only calls and returns through, with what begins and ends them in the trace. */
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
	add_event(config, &lead->text, "branches", 1);
	if (config->fields & FIELD_FLAGS)
		sample_flags_text(&lead->text, flags);
	if (config->fields & FIELD_IP)
		text_putc(&lead->text, ' ');
}

/* Period, event and flags, up to the address: made once for each kind of branch. */
static void add_branch_lead(struct printer *printer, uint32_t flags)
{
	struct branch_lead *lead = printer->leads;

	while (lead->flags != flags && lead->flags && lead < printer->leads + BRANCH_LEADS - 1)
		lead++;
	if (lead->flags != flags)
		make_lead(printer->config, lead, flags);
	text_add(&printer->out, lead->text.data, lead->text.size);
}

static bool begin_branch(struct printer *printer, uint32_t flags)
{
	if (!passes_filter(&printer->config->itrace, flags) || !print_begin(printer))
		return false;
	add_prefix(printer);
	add_branch_lead(printer, flags);
	printer->to_pending = true;
	printer->to_ip = 0;
	printer->to_insn = NULL;
	return true;
}

static void add_block_address(struct printer *printer, struct block *block, unsigned index)
{
	const struct block_text *text;

	if (!(printer->config->fields & FIELD_IP))
		return;
	text = block_addresses(block, &printer->config->style, &printer->where.code->arena);
	if (text)
		text_add(&printer->out, text->lines + text->offsets[index],
			 text->offsets[index + 1] - text->offsets[index]);
}

void print_branch_from_insn(struct printer *printer, struct block *block, unsigned index,
			    uint32_t flags)
{
	if (!begin_branch(printer, flags))
		return;
	add_block_address(printer, block, index);
	printer->to_insn = &block->insns[index];
}

/* The address space of an address in the present context. */
static struct code_space *space_of(struct printer *printer, uint64_t ip)
{
	const struct machines *machines = printer->where.code->machines;
	struct machine *machine = machines->host;

	if (printer->context.nr)
		machine = machines_guest(machines, printer->pid);
	return code_space_get(printer->where.code, machine, printer->pid, ip,
			      printer->context.bits);
}

void print_branch_from(struct printer *printer, uint64_t ip, uint32_t flags)
{
	if (begin_branch(printer, flags))
		add_address(printer, ip ? space_of(printer, ip) : NULL, ip);
}

static void end_branch(struct printer *printer)
{
	add_ipc(printer);
	if (printer->to_insn)
		insn_text(&printer->out, printer->to_insn, printer->space, &printer->config->style);
	text_putc(&printer->out, '\n');
	printer->to_pending = false;
}

void print_branch_to(struct printer *printer, uint64_t ip)
{
	if (!printer->to_pending)
		return;
	printer->to_ip = ip;
	if (!(printer->config->fields & FIELD_ADDR)) {
		end_branch(printer);
		return;
	}
	text_puts(&printer->out, " => ");
	if (!ip)
		print_branch_settle(printer);
}

void print_branch_settle(struct printer *printer)
{
	struct code_space *space = NULL;

	if (!printer->to_pending)
		return;
	if (printer->to_ip)
		space = space_of(printer, printer->to_ip);
	text_hex(&printer->out, printer->to_ip, 16);
	address_text(&printer->out, space, printer->to_ip, printer->time_ns,
		     printer->config->fields);
	end_branch(printer);
}

static void arrive(struct printer *printer, struct block *block, unsigned index)
{
	const struct block_text *text =
		block_addresses(block, &printer->config->style, &printer->where.code->arena);

	if (text)
		text_add(&printer->out, text->lines + text->offsets[index],
			 text->offsets[index + 1] - text->offsets[index]);
	end_branch(printer);
}

void print_branch_to_insn(struct printer *printer, struct block *block, unsigned index)
{
	if (!printer->to_pending)
		return;
	print_branch_to(printer, block->insns[index].ip);
	if (printer->to_pending)
		arrive(printer, block, index);
}

void print_branch_arrived(struct printer *printer, struct block *block)
{
	if (!printer->to_pending)
		return;
	if (printer->to_ip == block->ip && block->count)
		arrive(printer, block, 0);
	else
		print_branch_settle(printer);
}

void print_vm_branch(struct printer *printer, uint64_t from, const struct insn *insn,
		     uint32_t flags, uint64_t to)
{
	struct pt_context after = printer->context;

	printer->context = printer->branch_context;
	printer->stale = printer->place_stale = true;
	print_branch_from(printer, from, flags);
	if (printer->to_pending)
		printer->to_insn = insn;
	print_branch_to(printer, 0);
	printer->context = after;
	printer->stale = printer->place_stale = true;
	print_branch_from(printer, 0, flags);
	if (printer->to_pending)
		printer->to_insn = insn;
	print_branch_to(printer, to);
}

static bool wants_gap(const struct itrace *itrace, int kind)
{
	if (!itrace->errors)
		return false;
	if (kind == GAP_OVERFLOW)
		return itrace->error_overflow;
	return kind != GAP_LOST || itrace->error_lost;
}

void print_gap(struct printer *printer, uint64_t ip)
{
	enum gap_kind kind = (enum gap_kind)printer->gap_kind;
	char line[320];
	int length;

	if (!wants_gap(&printer->config->itrace, printer->gap_kind) || !print_begin(printer))
		return;
	length = snprintf(line, sizeof(line),
			  " instruction trace error type 1 time %" PRIu64 ".%09" PRIu64
			  " cpu %d pid %d tid %d ip %#" PRIx64 " code %u: %s"
			  " (queue %u, file offset %#" PRIx64 ")\n",
			  printer->time_ns / 1000000000, printer->time_ns % 1000000000,
			  printer->queue->cpu, printer->pid, printer->tid, ip, gap_code(kind),
			  gap_text(kind), printer->queue->index,
			  pt_file_offset(printer->queue, printer->gap_position));
	text_add(&printer->out, line, (size_t)length);
}

/* Kinds of --itrace that an event packet belongs to, its name, and its words. */
static const char *event_name(const struct printer *printer)
{
	const struct itrace *itrace = &printer->config->itrace;

	switch ((enum pt_packet_kind)printer->event.count) {
	case PT_PTW: return itrace->ptwrites ? "ptwrite" : NULL;
	case PT_CBR: return itrace->power ? "cbr" : NULL;
	case PT_PSB: return itrace->power ? "psb" : NULL;
	case PT_MWAIT: return itrace->power ? "mwait" : NULL;
	case PT_PWRE: return itrace->power ? "pwre" : NULL;
	case PT_EXSTOP: return itrace->power ? "exstop" : NULL;
	case PT_PWRX: return itrace->power ? "pwrx" : NULL;
	case PT_CFE:
	case PT_EVD: return itrace->interrupts ? "evt" : NULL;
	default: return NULL;
	}
}

static int cbr_words(const struct printer *printer, char *line, size_t size, uint64_t payload)
{
	uint32_t nonturbo = printer->config->pt->max_nonturbo;
	int length = snprintf(line, size, " cbr: %2u freq: %4u MHz ", (unsigned)payload,
			      (unsigned)payload * 100);

	if (nonturbo)
		length += snprintf(line + length, size - (size_t)length, "(%3u%%)",
				   (unsigned)((payload * 100 + nonturbo / 2) / nonturbo));
	return length;
}

static int event_words(const struct printer *printer, char *line, size_t size, uint64_t payload)
{
	int with_ip = !!(printer->event.flags & FLOW_TAKEN);
	unsigned p = (unsigned)payload;

	switch ((enum pt_packet_kind)printer->event.count) {
	case PT_PTW:
		return snprintf(line, size, " IP: %d payload: %#" PRIx64 " ", with_ip, payload);
	case PT_CBR: return cbr_words(printer, line, size, payload);
	case PT_PSB: return snprintf(line, size, " psb offs: %#" PRIx64, payload);
	case PT_MWAIT:
		return snprintf(line, size, " hints: %#x extensions: %#x ", p & 0xff,
				(unsigned)(payload >> 32) & 3);
	case PT_PWRE:
		return snprintf(line, size, " hw: %u cstate: %u sub-cstate: %u ", p >> 7 & 1,
				p >> 12 & 15, p >> 8 & 15);
	case PT_EXSTOP: return snprintf(line, size, " IP: %d ", with_ip);
	case PT_PWRX:
		return snprintf(line, size,
				" deepest cstate: %u last cstate: %u wake reason: %#x ", p & 15,
				p >> 4 & 15, p >> 8 & 15);
	case PT_CFE:
		return snprintf(line, size, " cfe: type %u vector %u IP: %d ", p & 31,
				printer->event.extra, with_ip);
	default:
		return snprintf(line, size, " evd: type %u payload %#" PRIx64 " ",
				printer->event.extra, payload);
	}
}

void print_event(struct printer *printer, uint64_t payload)
{
	enum { PERF_COLUMNS = 34 };
	const char *name = event_name(printer);
	uint32_t fields = printer->config->fields;
	char line[128];

	if (!name || !print_begin(printer))
		return;
	add_prefix(printer);
	if (fields & FIELD_EVENT) {
		text_right(&printer->out, name, printer->config->name_width);
		text_puts(&printer->out, ": ");
	}
	if (fields & FIELD_SYNTH) {
		(void)event_words(printer, line, sizeof(line), payload);
		text_left(&printer->out, line, PERF_COLUMNS);
	}
	if (fields & FIELD_IP)
		text_putc(&printer->out, ' ');
	add_address(printer, printer->space, printer->ip);
	text_putc(&printer->out, '\n');
}
