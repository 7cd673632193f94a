#include "decode/perf_text.h"

#include <inttypes.h>
#include <string.h>

#include "decode/base/printable.h"
#include "decode/perf_record.h"
#include "decode/perf_sample.h"

/* Word `index` of a body of u64s; 0 past its end. */
static uint64_t word(struct bytes body, uint64_t index)
{
	return bytes_number(body, 8 * index, 8);
}

static uint32_t half(struct bytes body, uint64_t index)
{
	return (uint32_t)bytes_number(body, 4 * index, 4);
}

static void print_build_id(const struct perf_mmap *map, FILE *out)
{
	char text[BUILD_ID_TEXT_BYTES];

	(void)fprintf(out, " <%s>]:", build_id_text(&map->build_id, text));
}

static void print_mmap(const struct perf_record *record, FILE *out)
{
	enum { READ = 1, WRITE = 2, EXEC = 4, SHARED = 1 };
	struct perf_mmap map;

	if (perf_mmap_read(record, &map) < 0)
		return;
	(void)fprintf(out, " %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ ", map.pid, map.tid, map.start,
		      map.size);
	(void)fprintf(out, map.page_offset ? "%#" PRIx64 : "%" PRIx64, map.page_offset);
	if (record->type == PERF_MMAP) {
		(void)fprintf(out, "]: %c ", record->misc & PERF_MISC_MMAP_DATA ? 'r' : 'x');
		printable_puts(map.filename, out);
		return;
	}
	if (record->misc & PERF_MISC_MMAP_BUILD_ID)
		print_build_id(&map, out);
	else
		(void)fprintf(out, " %02x:%02x %" PRIu64 " %" PRIu64 "]:", map.major, map.minor,
			      map.inode, map.generation);
	(void)fprintf(out, " %c%c%c%c ", map.protection & READ ? 'r' : '-',
		      map.protection & WRITE ? 'w' : '-', map.protection & EXEC ? 'x' : '-',
		      map.flags & SHARED ? 's' : 'p');
	printable_puts(map.filename, out);
}

static void print_comm(const struct perf_record *record, FILE *out)
{
	struct perf_comm comm;

	if (perf_comm_read(record, &comm))
		return;
	(void)fputs(comm.is_exec ? " exec: " : ": ", out);
	printable_puts(comm.name, out);
	(void)fprintf(out, ":%d/%d", comm.pid, comm.tid);
}

static void print_task(const struct perf_record *record, FILE *out)
{
	struct perf_task task;

	if (!perf_task_read(record, &task))
		(void)fprintf(out, "(%d:%d):(%d:%d)", task.pid, task.tid, task.parent_pid,
			      task.parent_tid);
}

static void print_switch(const struct perf_record *record, FILE *out)
{
	struct perf_switch change;
	const char *way;

	if (perf_switch_read(record, &change) < 0)
		return;
	way = !change.is_out ? "IN         " : change.is_preempt ? "OUT preempt" : "OUT        ";
	if (record->type == PERF_SWITCH)
		(void)fprintf(out, " %s", way);
	else
		(void)fprintf(out, " %s  %s pid/tid: %5d/%-5d", way,
			      change.is_out ? "next" : "prev", change.other_pid, change.other_tid);
}

static void print_itrace_start(const struct perf_record *record, FILE *out)
{
	int32_t pid, tid;

	if (!perf_thread_read(record, &pid, &tid))
		(void)fprintf(out, " pid: %u tid: %u", (uint32_t)pid, (uint32_t)tid);
}

static void print_aux(const struct perf_record *record, FILE *out)
{
	struct perf_aux aux;

	if (!perf_aux_read(record, &aux))
		(void)fprintf(
			out,
			" offset: %#" PRIx64 " size: %#" PRIx64 " flags: %#" PRIx64 " [%s%s%s]",
			aux.offset, aux.size, aux.flags, aux.flags & PERF_AUX_TRUNCATED ? "T" : "",
			aux.flags & PERF_AUX_OVERWRITE ? "O" : "",
			aux.flags & PERF_AUX_PARTIAL ? "P" : "");
}

static void print_lost(const struct perf_record *record, FILE *out)
{
	struct perf_lost lost;

	if (!perf_lost_read(record, &lost))
		(void)fprintf(out, ": id:%" PRIu64 ": lost:%" PRIu64, lost.id, lost.count);
}

static void print_lost_samples(const struct perf_record *record, FILE *out)
{
	uint64_t count;

	if (!perf_lost_samples_read(record, &count))
		(void)fprintf(out, ": id:%" PRIu64 ": lost samples :%" PRIu64, record->id, count);
}

static void print_ksymbol(const struct perf_record *record, FILE *out)
{
	struct perf_ksymbol symbol;

	if (perf_ksymbol_read(record, &symbol))
		return;
	(void)fprintf(out, " addr %" PRIx64 " len %u type %u flags 0x%x name ", symbol.address,
		      symbol.size, symbol.type, symbol.flags);
	printable_puts(symbol.name, out);
}

static void print_bpf_event(const struct perf_record *record, FILE *out)
{
	struct perf_bpf_event event;

	if (!perf_bpf_event_read(record, &event))
		(void)fprintf(out, " type %u, flags %u, id %u", event.type, event.flags, event.id);
}

static void print_poke_bytes(const char *title, const uint8_t *bytes, unsigned size, FILE *out)
{
	for (unsigned i = 0; i < size; i++) {
		if (i % 16 == 0)
			(void)fprintf(out, "\n            %s bytes:", title);
		(void)fprintf(out, " %02x", bytes[i]);
	}
}

static void print_text_poke(const struct perf_record *record, struct machine *host, FILE *out)
{
	struct perf_text_poke poke;
	struct symbol_view symbol = { 0 };

	if (perf_text_poke_read(record, &poke) < 0)
		return;
	(void)fprintf(out, " %" PRIx64 " ", poke.address);
	if (host)
		machine_symbol(host, -1, poke.address, record->time, &symbol);
	if (symbol.name) {
		printable_write(symbol.name, strlen(symbol.name), out);
		(void)fprintf(out, "+%#" PRIx64, symbol.offset);
	}
	(void)fprintf(out, " old len %u new len %u", poke.old_size, poke.new_size);
	print_poke_bytes("Old", poke.old_bytes, poke.old_size, out);
	print_poke_bytes("New", poke.new_bytes, poke.new_size, out);
}

static void print_namespaces(const struct perf_record *record, FILE *out)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	enum { KNOWN = sizeof(names) / sizeof(*names), IN_LINE = 4 };
	struct bytes body = perf_record_body(record);
	uint64_t count = word(body, 1);

	(void)fprintf(out, " %d/%d - nr_namespaces: %" PRIu64 "\n\t\t[", (int32_t)half(body, 0),
		      (int32_t)half(body, 1), count);
	for (uint64_t i = 0; i < count && 8 * (2 * i + 4) <= body.size; i++)
		(void)fprintf(out, "%s%" PRIu64 "/%s: %" PRIu64 "/%#" PRIx64 "%s",
			      i && i % IN_LINE == 0 ? "\n\t\t " : "", i,
			      i < KNOWN ? names[i] : "UNKNOWN", word(body, 2 * i + 2),
			      word(body, 2 * i + 3), i + 1 < count ? ", " : "]");
}

static void print_cgroup(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	struct bytes path = bytes_slice(body, 8, body.size);
	const char *text = (const char *)path.data;

	(void)fprintf(out, " cgroup: %" PRIu64 " ", word(body, 0));
	if (text)
		printable_write(text, strnlen(text, path.size), out);
}

static void print_hw_id(const struct perf_record *record, FILE *out)
{
	(void)fprintf(out, " hw_id: %#" PRIx64, word(perf_record_body(record), 0));
}

static void print_time_conv(const struct perf_record *record, FILE *out)
{
	static const char *const names[] = { "Time Shift     ", "Time Muliplier ",
					     "Time Zero      ", "Time Cycles    ",
					     "Time Mask      " };
	enum { MASK = 4 };
	struct bytes body = perf_record_body(record);
	uint64_t caps = word(body, 5);

	for (unsigned i = 0; i <= MASK && 8 * (i + 1) <= body.size; i++)
		(void)fprintf(out, i == MASK ? "\n... %s %#" PRIx64 : "\n... %s %" PRIu64, names[i],
			      word(body, i));
	if (body.size >= 48)
		(void)fprintf(out, "\n... Cap Time Zero   %u\n... Cap Time Short  %u",
			      (unsigned)(caps & 255), (unsigned)(caps >> 8 & 255));
	(void)fputs("\n: unhandled!", out);
}

static void print_id_index(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	uint64_t count = word(body, 0), fits = body.size / 32;
	bool has_machines = body.size / 48 >= count && count * 48 + 8 <= body.size;

	(void)fprintf(out, " nr: %" PRIu64, count);
	for (uint64_t i = 0; i < count && i < fits; i++) {
		(void)fprintf(out,
			      "\n ... id: %" PRIu64 "  idx: %" PRIu64 "  cpu: %" PRId64
			      "  tid: %" PRId64,
			      word(body, 1 + 4 * i), word(body, 2 + 4 * i),
			      (int64_t)word(body, 3 + 4 * i), (int64_t)word(body, 4 + 4 * i));
		if (has_machines)
			(void)fprintf(out, "  machine_pid: %" PRId64 "  vcpu: %" PRId64,
				      (int64_t)word(body, 1 + 4 * count + 2 * i),
				      (int64_t)word(body, 2 + 4 * count + 2 * i));
	}
}

static void print_info_filter(struct bytes body, FILE *out)
{
	enum { LENGTH = 17, TEXT = 18 };
	uint64_t length = word(body, LENGTH), words = length ? length / 8 + 1 : 0;
	struct bytes text = bytes_slice(body, 8 * TEXT, length);

	(void)fprintf(out, "\n  Filter string len.  %" PRIu64, length);
	(void)fputs("\n  Filter string       ", out);
	if (text.size)
		printable_write((const char *)text.data,
				strnlen((const char *)text.data, text.size), out);
	if (words < body.size && 8 * (TEXT + words) < body.size)
		(void)fprintf(out, "\n  Cap Event Trace     %" PRIu64, word(body, TEXT + words));
}

static void print_auxtrace_info(const struct perf_record *record, FILE *out)
{
	static const struct {
		const char *name;
		bool is_hex;
	} words[] = {
		{ "PMU Type           ", false }, { "Time Shift         ", false },
		{ "Time Muliplier     ", false }, { "Time Zero          ", false },
		{ "Cap Time Zero      ", false }, { "TSC bit            ", true },
		{ "NoRETComp bit      ", true },  { "Have sched_switch  ", false },
		{ "Snapshot mode      ", false }, { "Per-cpu maps       ", false },
		{ "MTC bit            ", true },  { "MTC freq bits      ", true },
		{ "TSC:CTC numerator  ", false }, { "TSC:CTC denominator", false },
		{ "CYC bit            ", true },  { "Max non-turbo ratio", false },
	};
	struct bytes body = perf_record_body(record);

	(void)fprintf(out, " type: %u", half(body, 0));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words) && 8 * (i + 2) <= body.size; i++)
		(void)fprintf(out, words[i].is_hex ? "\n  %s %#" PRIx64 : "\n  %s %" PRIu64,
			      words[i].name, word(body, i + 1));
	if (body.size >= 8 * 18)
		print_info_filter(body, out);
}

static void print_auxtrace(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);

	(void)fprintf(out,
		      " size: %#" PRIx64 "  offset: %#" PRIx64 "  ref: %#" PRIx64
		      "  idx: %u  tid: %d  cpu: %d",
		      word(body, 0), word(body, 1), word(body, 2), half(body, 6),
		      (int32_t)half(body, 7), (int32_t)half(body, 8));
}

/* What perf found wrong with a trace, in a recording that perf inject made. The record has grown:
 * in format 0 the message is where the time is in the others, and 2 has the guest behind it. */
static void print_auxtrace_error(const struct perf_record *record, FILE *out)
{
	enum { TYPE, CODE, CPU, PID, TID, FORMAT, MACHINE_PID = 26, VCPU }; /* of 32 bits */
	enum { IP = 3, TIME };                                              /* of 64 bits */
	enum { OLD_MESSAGE = 32, MESSAGE = 40, MESSAGE_BYTES = 64, ITRACE = 1 };
	struct bytes body = perf_record_body(record), message;
	uint32_t format = half(body, FORMAT);
	uint64_t time_ns = format ? word(body, TIME) : 0;

	message = bytes_slice(body, format ? MESSAGE : OLD_MESSAGE, MESSAGE_BYTES);
	if (!message.size)
		return;
	(void)fprintf(out, " %s error type %u time ",
		      half(body, TYPE) == ITRACE ? "instruction trace" : "unknown AUX",
		      half(body, TYPE));
	if (time_ns)
		(void)fprintf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000,
			      time_ns % 1000000000);
	else
		(void)fputc('0', out);
	if (format >= 2 && half(body, MACHINE_PID))
		(void)fprintf(out, " machine_pid %d vcpu %d", (int32_t)half(body, MACHINE_PID),
			      (int32_t)half(body, VCPU));
	(void)fprintf(out,
		      " cpu %d pid %d tid %d ip %#" PRIx64 " code %u: ", (int32_t)half(body, CPU),
		      (int32_t)half(body, PID), (int32_t)half(body, TID), word(body, IP),
		      half(body, CODE));
	printable_write((const char *)message.data,
			strnlen((const char *)message.data, message.size), out);
}

static void print_thread_map(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	char name[17];
	int32_t tid;

	(void)fprintf(out, " nr: %" PRIu64 " thread%s: ", word(body, 0),
		      word(body, 0) > 1 ? "s" : "");
	for (uint64_t i = 0; !perf_thread_map_entry(record, i, &tid, name); i++)
		(void)fprintf(out, "%s%d", i ? ", " : "", tid);
}

/* A list of CPUs as ranges, "0-3,8"; -1 is any CPU. */
struct ranges {
	FILE *out;
	int64_t first, last;
	bool is_open, any;
};

static void end_range(struct ranges *ranges)
{
	if (!ranges->is_open)
		return;
	(void)fprintf(ranges->out, ranges->any ? ",%" PRId64 : "%" PRId64, ranges->first);
	if (ranges->last > ranges->first)
		(void)fprintf(ranges->out, "-%" PRId64, ranges->last);
	ranges->any = true;
}

static void add_cpu(struct ranges *ranges, int64_t cpu)
{
	if (ranges->is_open && cpu == ranges->last + 1) {
		ranges->last = cpu;
		return;
	}
	end_range(ranges);
	ranges->first = ranges->last = cpu;
	ranges->is_open = true;
}

/* The words lie behind the type and a header as long as one of them. */
static void print_cpu_mask(struct bytes body, struct ranges *ranges)
{
	const uint64_t count = bytes_number(body, 2, 2), size = bytes_number(body, 4, 2);
	const uint64_t words = 2 + (size == 8 ? 8 : 4);

	for (uint64_t bit = 0; bit < count * size * 8; bit++) {
		uint64_t byte;

		if (!bytes_read(body, words + bit / 8, 1, &byte))
			return;
		if (byte >> bit % 8 & 1)
			add_cpu(ranges, (int64_t)bit);
	}
}

static void print_cpus(struct bytes body, FILE *out)
{
	enum { LIST, MASK, RANGE };
	struct ranges ranges = { .out = out };
	const uint64_t kind = bytes_number(body, 0, 2), count = bytes_number(body, 2, 2);
	uint64_t cpu, last;

	if (kind == MASK)
		print_cpu_mask(body, &ranges);
	for (uint64_t i = 0; kind == LIST && i < count; i++)
		if (bytes_read(body, 4 + 2 * i, 2, &cpu))
			add_cpu(&ranges, (int16_t)cpu);
	if (kind == RANGE && (count & 255))
		add_cpu(&ranges, -1);
	if (kind == RANGE && bytes_read(body, 4, 2, &cpu) && bytes_read(body, 6, 2, &last))
		for (; cpu <= last; cpu++)
			add_cpu(&ranges, (int64_t)cpu);
	end_range(&ranges);
}

static void print_cpu_map(const struct perf_record *record, FILE *out)
{
	(void)fputs(": ", out);
	print_cpus(perf_record_body(record), out);
}

static void print_sample(const struct perf_record *record, const struct perf_event *event,
			 FILE *out)
{
	struct perf_sample sample;

	if (!event || perf_sample_read(event, perf_record_body(record), &sample) < 0)
		return;
	(void)fprintf(out, "(IP, 0x%x): %d/%d: %#" PRIx64 " period: %" PRIu64 " addr: %#" PRIx64,
		      record->misc, sample.pid, sample.tid, sample.ip,
		      sample.period ? sample.period : event->sample_period, sample.address);
}

static void print_event_update(const struct perf_record *record, FILE *out)
{
	enum { UNIT, SCALE, NAME, CPUS, WHAT = 16 };
	struct bytes body = perf_record_body(record), what = bytes_slice(body, WHAT, body.size);
	const uint64_t kind = word(body, 0), bits = word(what, 0);
	double scale;

	(void)fprintf(out, "\n... id:    %" PRIu64, word(body, 1));
	if (!what.size)
		return;
	switch (kind) {
	case UNIT:
	case NAME:
		(void)fputs(kind == UNIT ? "\n... unit:  " : "\n... name:  ", out);
		printable_write((const char *)what.data,
				strnlen((const char *)what.data, what.size), out);
		break;
	case SCALE:
		memcpy(&scale, &bits, sizeof(scale));
		(void)fprintf(out, "\n... scale: %f", scale);
		break;
	case CPUS:
		(void)fputs("\n... ", out);
		print_cpus(what, out);
		break;
	default: (void)fputs("\n... unknown type", out);
	}
}

static void print_unhandled(const struct perf_record *record, FILE *out)
{
	(void)fputs(": unhandled!", out);
}

static void print_nothing(const struct perf_record *record, FILE *out)
{
}

static const struct {
	const char *name;
	void (*print)(const struct perf_record *record, FILE *out);
} kinds[] = {
	[PERF_MMAP] = { "MMAP", print_mmap },
	[PERF_LOST] = { "LOST", print_lost },
	[PERF_COMM] = { "COMM", print_comm },
	[PERF_EXIT] = { "EXIT", print_task },
	[PERF_THROTTLE] = { "THROTTLE", print_nothing },
	[PERF_UNTHROTTLE] = { "UNTHROTTLE", print_nothing },
	[PERF_FORK] = { "FORK", print_task },
	[PERF_READ] = { "READ", print_nothing },
	[PERF_SAMPLE] = { "SAMPLE", print_nothing },
	[PERF_MMAP2] = { "MMAP2", print_mmap },
	[PERF_AUX] = { "AUX", print_aux },
	[PERF_ITRACE_START] = { "ITRACE_START", print_itrace_start },
	[PERF_LOST_SAMPLES] = { "LOST_SAMPLES", print_lost_samples },
	[PERF_SWITCH] = { "SWITCH", print_switch },
	[PERF_SWITCH_CPU_WIDE] = { "SWITCH_CPU_WIDE", print_switch },
	[PERF_NAMESPACES] = { "NAMESPACES", print_namespaces },
	[PERF_KSYMBOL] = { "KSYMBOL", print_ksymbol },
	[PERF_BPF_EVENT] = { "BPF_EVENT", print_bpf_event },
	[PERF_CGROUP] = { "CGROUP", print_cgroup },
	[PERF_TEXT_POKE] = { "TEXT_POKE", print_nothing },
	[PERF_AUX_OUTPUT_HW_ID] = { "AUX_OUTPUT_HW_ID", print_hw_id },
	[PERF_HEADER_ATTR] = { "ATTR", print_nothing },
	[PERF_HEADER_EVENT_TYPE] = { "EVENT_TYPE", print_nothing },
	[PERF_TRACING_DATA] = { "TRACING_DATA", print_nothing },
	[PERF_HEADER_BUILD_ID] = { "BUILD_ID", print_nothing },
	[PERF_FINISHED_ROUND] = { "FINISHED_ROUND", print_nothing },
	[PERF_ID_INDEX] = { "ID_INDEX", print_id_index },
	[PERF_AUXTRACE_INFO] = { "AUXTRACE_INFO", print_auxtrace_info },
	[PERF_AUXTRACE] = { "AUXTRACE", print_auxtrace },
	[PERF_AUXTRACE_ERROR] = { "AUXTRACE_ERROR", print_auxtrace_error },
	[PERF_THREAD_MAP] = { "THREAD_MAP", print_thread_map },
	[PERF_CPU_MAP] = { "CPU_MAP", print_cpu_map },
	[PERF_STAT_CONFIG] = { "STAT_CONFIG", print_unhandled },
	[PERF_STAT] = { "STAT", print_unhandled },
	[PERF_STAT_ROUND] = { "STAT_ROUND", print_unhandled },
	[PERF_EVENT_UPDATE] = { "EVENT_UPDATE", print_event_update },
	[PERF_TIME_CONV] = { "TIME_CONV", print_time_conv },
	[PERF_HEADER_FEATURE] = { "FEATURE", print_nothing },
	[PERF_COMPRESSED] = { "COMPRESSED", print_nothing },
	[PERF_FINISHED_INIT] = { "FINISHED_INIT", print_unhandled },
	[PERF_COMPRESSED2] = { "COMPRESSED2", print_nothing },
};

const char *perf_text_name(uint32_t type)
{
	if (type >= sizeof(kinds) / sizeof(*kinds) || !kinds[type].name)
		return "INVALID";
	return kinds[type].name;
}

/* perf leaves the line of some open. */
static bool ends_line(uint32_t type)
{
	return type != PERF_HEADER_ATTR && type != PERF_HEADER_FEATURE && type != PERF_THROTTLE &&
	       type != PERF_UNTHROTTLE;
}

void perf_text_print(const struct perf_record *record, const struct perf_event *event,
		     struct machine *host, FILE *out)
{
	if (record->type == PERF_SAMPLE)
		print_sample(record, event, out);
	else if (record->type == PERF_TEXT_POKE)
		print_text_poke(record, host, out);
	else if (record->type < sizeof(kinds) / sizeof(*kinds) && kinds[record->type].print)
		kinds[record->type].print(record, out);
	if (ends_line(record->type))
		(void)fputc('\n', out);
}
