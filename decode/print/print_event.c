#include "decode/print/print_event.h"

#include <inttypes.h>
#include <stdio.h>

#include "decode/print/print_line.h"
#include "decode/print/print_origin.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"

static bool wants_gap(const struct itrace *itrace, enum gap_kind kind)
{
	if (!itrace->errors)
		return false;
	if (kind == GAP_OVERFLOW)
		return itrace->error_overflow;
	return kind != GAP_LOST || itrace->error_lost;
}

/* Terminal escapes (ECMA-48, SGR). */
#define RED "\033[31m"
#define PLAIN "\033[0m"

void print_gap(struct printer *printer, uint64_t ip)
{
	enum gap_kind kind = printer->gap.kind;
	uint64_t offset = pt_file_offset(printer->queue, printer->gap.position);
	char line[320];
	int length;

	if (!wants_gap(&printer->config->itrace, kind) || !print_begin(printer))
		return;
	if (printer->config->data)
		(void)perf_data_place(printer->config->data, &offset);
	length = snprintf(line, sizeof(line),
			  "%s instruction trace error type 1 time %" PRIu64 ".%09" PRIu64
			  " cpu %d pid %d tid %d ip %#" PRIx64 " code %u: %s"
			  " (queue %u, file offset %#" PRIx64 ")%s\n",
			  printer->config->color ? RED : "", printer->time_ns / 1000000000,
			  printer->time_ns % 1000000000, printer->queue->cpu, printer->thread.pid,
			  printer->thread.tid, ip, gap_code(kind), gap_text(kind),
			  printer->queue->index, offset, printer->config->color ? PLAIN : "");
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
	case PT_CFE: return itrace->interrupts ? "evt" : NULL;
	default: return NULL;
	}
}

/* Of the core's clock, by that of the bus: the TSC goes at the nominal ratio to it, which is about
 * 100 MHz. */
static uint64_t cbr_mhz(const struct pt_config *pt, uint64_t ratio)
{
	uint64_t bus_khz = 100000;

	if (pt->nominal_hz && pt->max_nonturbo)
		bus_khz = pt->nominal_hz / pt->max_nonturbo / 1000;
	return (ratio * bus_khz + 500) / 1000;
}

static int cbr_words(const struct printer *printer, char *line, size_t size, uint64_t payload)
{
	uint32_t nonturbo = printer->config->pt->max_nonturbo;
	int length = snprintf(line, size, " cbr: %2u freq: %4" PRIu64 " MHz ", (unsigned)payload,
			      cbr_mhz(printer->config->pt, payload));

	if (nonturbo)
		length += snprintf(line + length, size - (size_t)length, "(%3u%%)",
				   (unsigned)((payload * 100 + nonturbo / 2) / nonturbo));
	return length;
}

/* SDM "Control Flow Event". The data of the event came in packets before it. */
static int cfe_words(const struct printer *printer, char *line, size_t size, unsigned type)
{
	static const char *const names[32] = {
		[1] = "INTR",        [2] = "IRET",      [3] = "SMI",     [4] = "RSM",
		[5] = "SIPI",        [6] = "INIT",      [7] = "VMENTRY", [8] = "VMEXIT",
		[9] = "VMEXIT_INTR", [10] = "SHUTDOWN", [12] = "UINTR",  [13] = "UIRET",
	};
	char number[8];

	(void)snprintf(number, sizeof(number), "%u", type);
	return snprintf(line, size, " cfe: %s IP: %d vector: %u%.*s",
			names[type] ? names[type] : number, !!(printer->event.flags & FLOW_TAKEN),
			printer->event.extra, (int)printer->event_data.size,
			printer->event_data.data);
}

/* Keep data for the control flow event that is to come. */
static void keep_event_data(struct printer *printer, uint64_t payload)
{
	enum { MOST = 64 * 32 }; /* more than there are kinds of it */
	static const char *const names[] = { "PFA", "VMXQ", "VMXR" };
	unsigned type = printer->event.extra & 63;
	char word[48];

	if (printer->event_data.size > MOST)
		return;
	if (type < sizeof(names) / sizeof(*names))
		(void)snprintf(word, sizeof(word), " %s: %#" PRIx64, names[type], payload);
	else
		(void)snprintf(word, sizeof(word), " EVD_%u: %#" PRIx64, type, payload);
	text_puts(&printer->event_data, word);
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
	case PT_CFE: return cfe_words(printer, line, size, p & 31);
	default: return 0;
	}
}

static void add_name(struct printer *printer, const char *name, bool has_period)
{
	const struct print_config *config = printer->config;

	if (has_period)
		text_puts(&printer->out, "         1 ");
	if (!(config->fields & FIELD_EVENT))
		return;
	text_right(&printer->out, name, config->name_width);
	text_puts(&printer->out, ": ");
}

/* A line of an event that is `name`, with its words, at `ip`, by which the flow goes to `addr`. */
static void print_words(struct printer *printer, const char *name, const char *words, uint64_t ip,
			uint64_t addr)
{
	enum { PERF_COLUMNS = 34 };
	uint32_t fields = printer->config->fields;
	struct code_space *space;

	if (!print_begin(printer))
		return;
	space = print_space(printer, ip);
	print_add_event_prefix(printer);
	add_name(printer, name, printer->config->event_period);
	if (fields & FIELD_FLAGS)
		sample_flags_text(&printer->out, 0);
	if (fields & FIELD_SYNTH)
		text_left(&printer->out, words, PERF_COLUMNS);
	if (printer->config->insn_addr)
		text_hex(&printer->out, addr, 16);
	print_add_origin(printer, space, ip);
	print_add_insn_at(printer, space, ip);
	text_putc(&printer->out, '\n');
}

void print_event(struct printer *printer, uint64_t payload)
{
	const char *name = event_name(printer);
	char line[4096] = "";

	if (printer->event.count == PT_EVD) {
		keep_event_data(printer, payload);
		return;
	}
	/* between the traces of two threads, or where no code tells when the kernel switches */
	if (!printer->event.value || printer->config->pt->no_branches) {
		print_refresh(printer);
		prefix_switch(printer);
	}
	if (name) {
		(void)event_words(printer, line, sizeof(line), payload);
		print_words(printer, name, line, printer->event.value, 0);
	}
	if (printer->event.count == PT_CFE)
		printer->event_data.size = 0;
}

void print_interrupt_flag(struct printer *printer, const struct flow_item *branch)
{
	const struct waiting_branch *waiting = &printer->waiting;
	int set = !printer->context.if_clear;
	char line[64];

	if (!printer->config->itrace.interrupts)
		return;
	(void)snprintf(line, sizeof(line), " IFLAG: %d->%d %s branch", !set, set,
		       branch ? "via" : "non");
	print_words(printer, "iflag", line,
		    waiting->block ? waiting->block->insns[waiting->index].ip : printer->ip,
		    branch ? branch->value : 0);
}

void print_transaction(struct printer *printer)
{
	const struct print_config *config = printer->config;
	struct code_space *space;

	if (!config->itrace.transactions || !print_begin(printer))
		return;
	space = print_space(printer, printer->ip);
	print_add_event_prefix(printer);
	add_name(printer, "transactions", config->fields & FIELD_PERIOD);
	if (config->fields & FIELD_FLAGS)
		sample_flags_text(&printer->out, printer->is_aborting
							 ? SAMPLE_BRANCH | SAMPLE_TX_ABORT
						 : printer->context.in_tx ? SAMPLE_IN_TX
									  : 0);
	print_add_origin(printer, space, printer->ip);
	print_add_insn_at(printer, space, printer->ip);
	text_putc(&printer->out, '\n');
}
