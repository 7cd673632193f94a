#include "decode/print/perf_text.h"

#include <inttypes.h>
#include <string.h>

#include "decode/base/printable.h"
#include "decode/perf/perf_record.h"
#include "decode/perf/perf_sample.h"
#include "decode/perf/perf_synth_text.h"

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
	uint64_t count = bytes_word(body, 1);

	(void)fprintf(out, " %d/%d - nr_namespaces: %" PRIu64 "\n\t\t[",
		      (int32_t)bytes_half(body, 0), (int32_t)bytes_half(body, 1), count);
	for (uint64_t i = 0; i < count && 8 * (2 * i + 4) <= body.size; i++)
		(void)fprintf(out, "%s%" PRIu64 "/%s: %" PRIu64 "/%#" PRIx64 "%s",
			      i && i % IN_LINE == 0 ? "\n\t\t " : "", i,
			      i < KNOWN ? names[i] : "UNKNOWN", bytes_word(body, 2 * i + 2),
			      bytes_word(body, 2 * i + 3), i + 1 < count ? ", " : "]");
}

static void print_cgroup(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	struct bytes path = bytes_slice(body, 8, body.size);
	const char *text = (const char *)path.data;

	(void)fprintf(out, " cgroup: %" PRIu64 " ", bytes_word(body, 0));
	if (text)
		printable_write(text, strnlen(text, path.size), out);
}

static void print_hw_id(const struct perf_record *record, FILE *out)
{
	(void)fprintf(out, " hw_id: %#" PRIx64, bytes_word(perf_record_body(record), 0));
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

static void print_unhandled(const struct perf_record *record, FILE *out)
{
	(void)fputs(": unhandled!", out);
}

/* Those without a function have nothing behind their names. */
static const struct {
	const char *name;
	void (*print)(const struct perf_record *record, FILE *out);
} kinds[] = {
	[PERF_MMAP] = { "MMAP", print_mmap },
	[PERF_LOST] = { "LOST", print_lost },
	[PERF_COMM] = { "COMM", print_comm },
	[PERF_EXIT] = { "EXIT", print_task },
	[PERF_THROTTLE] = { "THROTTLE" },
	[PERF_UNTHROTTLE] = { "UNTHROTTLE" },
	[PERF_FORK] = { "FORK", print_task },
	[PERF_READ] = { "READ" },
	[PERF_SAMPLE] = { "SAMPLE" },
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
	[PERF_TEXT_POKE] = { "TEXT_POKE" },
	[PERF_AUX_OUTPUT_HW_ID] = { "AUX_OUTPUT_HW_ID", print_hw_id },
	[PERF_HEADER_ATTR] = { "ATTR" },
	[PERF_HEADER_EVENT_TYPE] = { "EVENT_TYPE" },
	[PERF_TRACING_DATA] = { "TRACING_DATA" },
	[PERF_HEADER_BUILD_ID] = { "BUILD_ID" },
	[PERF_FINISHED_ROUND] = { "FINISHED_ROUND" },
	[PERF_ID_INDEX] = { "ID_INDEX", perf_synth_text },
	[PERF_AUXTRACE_INFO] = { "AUXTRACE_INFO", perf_synth_text },
	[PERF_AUXTRACE] = { "AUXTRACE", perf_synth_text },
	[PERF_AUXTRACE_ERROR] = { "AUXTRACE_ERROR", perf_synth_text },
	[PERF_THREAD_MAP] = { "THREAD_MAP", perf_synth_text },
	[PERF_CPU_MAP] = { "CPU_MAP", perf_synth_text },
	[PERF_STAT_CONFIG] = { "STAT_CONFIG", print_unhandled },
	[PERF_STAT] = { "STAT", print_unhandled },
	[PERF_STAT_ROUND] = { "STAT_ROUND", print_unhandled },
	[PERF_EVENT_UPDATE] = { "EVENT_UPDATE", perf_synth_text },
	[PERF_TIME_CONV] = { "TIME_CONV", perf_synth_text },
	[PERF_HEADER_FEATURE] = { "FEATURE" },
	[PERF_COMPRESSED] = { "COMPRESSED" },
	[PERF_FINISHED_INIT] = { "FINISHED_INIT", print_unhandled },
	[PERF_COMPRESSED2] = { "COMPRESSED2" },
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
