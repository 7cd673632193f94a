#include "decode/print_event.h"

#include <inttypes.h>
#include <stdio.h>

#include "decode/print_line.h"
#include "decode/sample_flags.h"

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
		return snprintf(line, size, " deepest cstate: %u last cstate: %u wake reason: %#x ",
				p & 15, p >> 4 & 15, p >> 8 & 15);
	case PT_CFE:
		return snprintf(line, size, " cfe: type %u vector %u IP: %d ", p & 31,
				printer->event.extra, with_ip);
	default:
		return snprintf(line, size, " evd: type %u payload %#" PRIx64 " ",
				printer->event.extra, payload);
	}
}

static void add_name(struct printer *printer, const char *name)
{
	const struct print_config *config = printer->config;

	if (config->event_period)
		text_puts(&printer->out, "         1 ");
	if (!(config->fields & FIELD_EVENT))
		return;
	text_right(&printer->out, name, config->name_width);
	text_puts(&printer->out, ": ");
}

void print_event(struct printer *printer, uint64_t payload)
{
	enum { PERF_COLUMNS = 34 };
	const char *name = event_name(printer);
	uint64_t ip = printer->event.value;
	uint32_t fields = printer->config->fields;
	char line[128];

	if (!name || !print_begin(printer))
		return;
	print_add_prefix(printer);
	add_name(printer, name);
	if (fields & FIELD_FLAGS)
		sample_flags_text(&printer->out, 0);
	if (fields & FIELD_SYNTH) {
		(void)event_words(printer, line, sizeof(line), payload);
		text_left(&printer->out, line, PERF_COLUMNS);
	}
	if (printer->config->insn_addr)
		text_hex(&printer->out, 0, 16);
	if (fields & FIELD_IP)
		print_add_address(printer, print_space(printer, ip), ip);
	if (fields & FIELD_INSNLEN)
		text_puts(&printer->out, " ilen: 0");
	text_putc(&printer->out, '\n');
}
