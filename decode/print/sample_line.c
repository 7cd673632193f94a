#include "decode/print/sample_line.h"

#include "decode/code/machines.h"
#include "decode/code/x86_insn.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_record.h"
#include "decode/print/block_text.h"
#include "decode/print/last_branches.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"

/* As perf: deeper chains are cut off (PERF_MAX_STACK_DEPTH). */
enum { MOST_CALLS = 127 };

/* From here on they are not addresses, but say in whose code those that follow are
 * (PERF_CONTEXT_*). */
static const uint64_t context_first = -(uint64_t)4095;

/* Of linux/perf_event.h: enum perf_sw_ids, and the last one perf_hw_id. */
enum {
	PAGE_FAULTS = 2,
	PAGE_FAULTS_MIN = 5,
	PAGE_FAULTS_MAJ = 6,
	DUMMY = 9,
	BRANCH_INSTRUCTIONS = 4,
};

struct sample_line {
	const struct print_config *config;
	const struct perf_event *event;
	struct perf_sample sample;
	struct prefix_owner owner;
	struct machine *machine; /* NULL: a guest that nothing is known of */
	uint32_t fields;
	bool has_chain;
	bool sides_told; /* flags of branches say which ends are in the guest */
	struct text *text;
};

enum event_kind sample_kind(const struct perf_event *event)
{
	static const enum event_kind kinds[] = {
		EVENT_HARDWARE, EVENT_SOFTWARE, EVENT_TRACEPOINT,
		EVENT_HARDWARE, EVENT_RAW,      EVENT_BREAKPOINT,
	};

	return event->type < sizeof(kinds) / sizeof(*kinds) ? kinds[event->type] : EVENT_OTHER;
}

bool sample_is_expected(const struct perf_event *event)
{
	return !event->is_pt && (event->type != PERF_EVENT_SOFTWARE || event->config != DUMMY);
}

const struct perf_event *sample_read(const struct perf_data *data, const struct perf_record *record,
				     struct perf_sample *ret)
{
	const struct perf_id *id = perf_event_find_id(data, record->id);
	struct bytes body = perf_record_body(record);
	const struct perf_event *event;

	if (!data->events.count)
		return NULL;
	event = &data->events.items[id ? id->event : 0];
	return event->is_pt || perf_sample_read(event, body, ret) ? NULL : event;
}

bool sample_in_guest(const struct perf_record *record)
{
	unsigned mode = record->misc & PERF_MISC_CPUMODE;

	return mode == PERF_CPUMODE_GUEST_KERNEL || mode == PERF_CPUMODE_GUEST_USER;
}

/* A guest's threads are not known, but by the number of the vCPU's. */
static void find_owner(struct sample_line *line, const struct perf_record *record)
{
	const struct print_config *config = line->config;
	struct prefix_owner *owner = &line->owner;

	*owner = (struct prefix_owner){ .pid = record->pid,
					.tid = record->tid,
					.time_ns = record->time,
					.in_guest = sample_in_guest(record) };
	if (owner->in_guest) {
		line->machine = machines_guest(config->machines, owner->pid);
	} else {
		line->machine = config->machines->host;
		owner->comm = sideband_comm(config->sideband, owner->tid, owner->time_ns);
	}
}

/* As in perf, a sample without a time is in every range of times. */
static bool is_wanted(const struct sample_line *line)
{
	bool has_time = line->event->sample_type & PERF_SAMPLE_TIME;

	return line->fields && prefix_is_wanted(line->config, &line->owner) &&
	       (!has_time || time_ranges_have(&line->config->times, line->sample.time));
}

static void add_prefix(struct sample_line *line)
{
	const struct prefix_owner *owner = &line->owner;
	uint32_t fields = line->fields;

	prefix_add_machine(line->text, fields, line->config, owner);
	if (line->has_chain && fields & FIELD_COMM) {
		prefix_add_comm(line->text, owner->comm, owner->tid, 0);
		fields &= ~(uint32_t)FIELD_COMM;
	}
	prefix_add_thread(line->text, fields, owner->comm, owner->pid, owner->tid);
	prefix_add_place(line->text, fields, line->sample.cpu, owner);
	if (fields & FIELD_TIME)
		prefix_add_time(line->text, line->config, line->sample.time);
}

static void add_event(struct sample_line *line)
{
	bool says_period = line->event->sample_type & PERF_SAMPLE_PERIOD;
	size_t from;

	if (line->fields & FIELD_PERIOD) {
		text_dec(line->text, says_period ? line->sample.period : line->event->sample_period,
			 10, ' ');
		text_putc(line->text, ' ');
	}
	if (line->fields & FIELD_EVENT) {
		from = line->text->size;
		text_right(line->text, *line->event->name ? line->event->name : "[unknown]",
			   line->config->name_width);
		text_printable(line->text, from);
		text_puts(line->text, ": ");
	}
	if (line->fields & FIELD_FLAGS)
		sample_flags_text(line->text, 0);
}

static void add_symbol(struct sample_line *line, uint64_t address)
{
	struct symbol_view symbol = { 0 };

	if (line->machine && address)
		machine_symbol(line->machine, line->owner.pid, address, line->owner.time_ns,
			       &symbol);
	symbol_text(line->text, &symbol, line->fields);
}

/* Whether the address of an event's samples is a place, as far as perf knows: those of page faults
 * and of branches (BTS). */
static bool has_place(const struct perf_event *event)
{
	if (event->type == PERF_EVENT_SOFTWARE)
		return event->config == PAGE_FAULTS || event->config == PAGE_FAULTS_MIN ||
		       event->config == PAGE_FAULTS_MAJ;
	return event->type == PERF_EVENT_HARDWARE && event->config == BRANCH_INSTRUCTIONS &&
	       event->sample_period == 1;
}

static void add_address(struct sample_line *line)
{
	text_hex(line->text, line->sample.address, 16);
	if (line->event->sample_type & PERF_SAMPLE_ADDR && has_place(line->event))
		add_symbol(line, line->sample.address);
}

/* Append a call: in a file, by its address there. */
static void add_call(struct sample_line *line, uint64_t address)
{
	uint64_t shown = address;

	if (line->machine)
		shown = machine_file_address(line->machine, line->owner.pid, address,
					     line->owner.time_ns);
	text_putc(line->text, '\t');
	text_hex(line->text, shown, 16);
	add_symbol(line, address);
	text_putc(line->text, '\n');
}

/* A walk of the stack by frame pointers may lead anywhere, where code keeps none. As in perf, an
 * unknown context among the addresses is a sign of that. */
static bool is_sound(struct bytes chain)
{
	/* hypervisor, kernel, user, and of guests, their kernel and user */
	static const int known[] = { 32, 128, 512, 2048, 2176, 2560 };

	for (size_t at = 0; at + 8 <= chain.size; at += 8) {
		uint64_t address = load_le(chain.data + at, 8);
		bool is_known = address < context_first;

		for (size_t i = 0; !is_known && i < sizeof(known) / sizeof(*known); i++)
			is_known = address == -(uint64_t)known[i];
		if (!is_known)
			return false;
	}
	return true;
}

static void add_chain(struct sample_line *line)
{
	struct bytes chain = line->sample.callchain;

	text_putc(line->text, '\n');
	if (!chain.size)
		add_call(line, line->sample.ip);
	if (!is_sound(chain))
		return;
	for (size_t at = 0, calls = 0; at + 8 <= chain.size && calls < MOST_CALLS; at += 8) {
		uint64_t address = load_le(chain.data + at, 8);

		if (address >= context_first)
			continue;
		add_call(line, address);
		calls++;
	}
}

static const char *dso_of(const struct sample_line *line, uint64_t ip, bool in_guest)
{
	const struct machines *machines = line->config->machines;
	struct machine *machine = line->machine;
	struct symbol_view symbol = { 0 };

	if (line->sides_told)
		machine = in_guest ? machines_guest(machines, line->owner.pid) : machines->host;
	if (machine && ip)
		machine_symbol(machine, line->owner.pid, ip, line->owner.time_ns, &symbol);
	return symbol.dso;
}

static void add_branches(struct sample_line *line)
{
	enum { SIZE = ORIGIN_BRANCH_BYTES };
	struct bytes left = line->sample.branches;

	for (; left.size >= SIZE; left = bytes_slice(left, SIZE, left.size)) {
		const struct branch_entry entry = { load_le(left.data, 8),
						    load_le(left.data + 8, 8),
						    load_le(left.data + 16, 8) };
		const char *dsos[2];

		if (line->fields & FIELD_DSO) {
			dsos[0] = dso_of(line, entry.from, entry.flags & ORIGIN_FROM_GUEST);
			dsos[1] = dso_of(line, entry.to, entry.flags & ORIGIN_TO_GUEST);
		}
		branch_entry_text(line->text, &entry, line->fields & FIELD_DSO ? dsos : NULL);
	}
}

static void add_insn(struct sample_line *line)
{
	struct code_space space = { .bits = 64 };
	struct code_view code;
	struct insn insn;

	if (!(line->fields & (FIELD_INSN | FIELD_INSNLEN | FIELD_DISASM)))
		return;
	if (line->machine && line->sample.ip &&
	    !machine_code(line->machine, line->owner.pid, line->sample.ip, line->owner.time_ns,
			  &code) &&
	    !insn_read(code.data, code.left, line->sample.ip, space.bits, &insn)) {
		struct block_style style = line->config->style;

		style.fields = line->fields;
		insn_text(line->text, &insn, &space, &style);
	} else if (line->fields & FIELD_INSNLEN) {
		text_puts(line->text, " ilen: 0");
	}
}

static void add_place(struct sample_line *line)
{
	if (line->has_chain) {
		add_chain(line);
		return;
	}
	text_putc(line->text, ' ');
	text_hex(line->text, line->sample.ip, 16);
	add_symbol(line, line->sample.ip);
}

/* What was recorded with the sample goes before what the trace tells. */
static void take_origin(struct sample_line *line, const struct sample_origin *origin)
{
	bool shows_calls = line->event->sample_type & PERF_SAMPLE_CALLCHAIN;

	if (line->config->itrace.samples.calls && !shows_calls) {
		line->sample.callchain = origin->calls;
		shows_calls = true;
	}
	line->has_chain = shows_calls && line->fields & FIELD_IP;
	if (!(line->event->sample_type & PERF_SAMPLE_BRANCH_STACK)) {
		line->sample.branches = origin->branches;
		line->sides_told = true;
	}
}

static void add_fields(struct sample_line *line, const struct perf_record *record,
		       struct tracepoint_text *points)
{
	add_prefix(line);
	add_event(line);
	if (line->fields & FIELD_TRACE && sample_kind(line->event) == EVENT_TRACEPOINT &&
	    line->sample.raw.size)
		tracepoint_text_add(points, line->event->config, line->sample.cpu, record->time,
				    line->sample.raw, line->text);
	if (line->fields & FIELD_ADDR)
		add_address(line);
	if (line->fields & FIELD_IP)
		add_place(line);
	if (line->fields & FIELD_BRSTACK)
		add_branches(line);
	add_insn(line);
	text_putc(line->text, '\n');
}

void sample_line_add(struct text *text, const struct print_config *config,
		     const struct perf_record *record, const struct sample_origin *origin,
		     struct tracepoint_text *points)
{
	struct sample_line line = { .config = config, .text = text };

	line.event = sample_read(config->data, record, &line.sample);
	if (!line.event)
		return;
	line.fields = config->sample_fields[sample_kind(line.event)];
	find_owner(&line, record);
	if (!is_wanted(&line))
		return;
	take_origin(&line, origin);
	add_fields(&line, record, points);
}
