#include "decode/perf/perf_synth_text.h"

#include <inttypes.h>
#include <string.h>

#include "decode/base/printable.h"
#include "decode/perf/perf_record.h"

static void print_time_conv(const struct perf_record *record, FILE *out)
{
	static const char *const names[] = { "Time Shift     ", "Time Muliplier ",
					     "Time Zero      ", "Time Cycles    ",
					     "Time Mask      " };
	enum { MASK = 4 };
	struct bytes body = perf_record_body(record);
	uint64_t caps = bytes_word(body, 5);

	for (unsigned i = 0; i <= MASK && 8 * (i + 1) <= body.size; i++)
		(void)fprintf(out, i == MASK ? "\n... %s %#" PRIx64 : "\n... %s %" PRIu64, names[i],
			      bytes_word(body, i));
	if (body.size >= 48)
		(void)fprintf(out, "\n... Cap Time Zero   %u\n... Cap Time Short  %u",
			      (unsigned)(caps & 255), (unsigned)(caps >> 8 & 255));
	(void)fputs("\n: unhandled!", out);
}

static void print_id_index(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	uint64_t count = bytes_word(body, 0), fits = body.size / 32;
	bool has_machines = body.size / 48 >= count && count * 48 + 8 <= body.size;

	(void)fprintf(out, " nr: %" PRIu64, count);
	for (uint64_t i = 0; i < count && i < fits; i++) {
		(void)fprintf(
			out,
			"\n ... id: %" PRIu64 "  idx: %" PRIu64 "  cpu: %" PRId64 "  tid: %" PRId64,
			bytes_word(body, 1 + 4 * i), bytes_word(body, 2 + 4 * i),
			(int64_t)bytes_word(body, 3 + 4 * i), (int64_t)bytes_word(body, 4 + 4 * i));
		if (has_machines)
			(void)fprintf(out, "  machine_pid: %" PRId64 "  vcpu: %" PRId64,
				      (int64_t)bytes_word(body, 1 + 4 * count + 2 * i),
				      (int64_t)bytes_word(body, 2 + 4 * count + 2 * i));
	}
}

static void print_info_filter(struct bytes body, FILE *out)
{
	enum { LENGTH = 17, TEXT = 18 };
	uint64_t length = bytes_word(body, LENGTH), words = length ? length / 8 + 1 : 0;
	struct bytes text = bytes_slice(body, 8 * TEXT, length);

	(void)fprintf(out, "\n  Filter string len.  %" PRIu64, length);
	(void)fputs("\n  Filter string       ", out);
	if (text.size)
		printable_write((const char *)text.data,
				strnlen((const char *)text.data, text.size), out);
	if (words < body.size && 8 * (TEXT + words) < body.size)
		(void)fprintf(out, "\n  Cap Event Trace     %" PRIu64,
			      bytes_word(body, TEXT + words));
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

	(void)fprintf(out, " type: %u", bytes_half(body, 0));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words) && 8 * (i + 2) <= body.size; i++)
		(void)fprintf(out, words[i].is_hex ? "\n  %s %#" PRIx64 : "\n  %s %" PRIu64,
			      words[i].name, bytes_word(body, i + 1));
	if (body.size >= 8 * 18)
		print_info_filter(body, out);
}

static void print_auxtrace(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);

	(void)fprintf(out,
		      " size: %#" PRIx64 "  offset: %#" PRIx64 "  ref: %#" PRIx64
		      "  idx: %u  tid: %d  cpu: %d",
		      bytes_word(body, 0), bytes_word(body, 1), bytes_word(body, 2),
		      bytes_half(body, 6), (int32_t)bytes_half(body, 7),
		      (int32_t)bytes_half(body, 8));
}

/* What perf found wrong with a trace, in a recording that perf inject made. The record has grown:
 * in format 0 the message is where the time is in the others, and 2 has the guest behind it. */
static void print_auxtrace_error(const struct perf_record *record, FILE *out)
{
	enum { TYPE, CODE, CPU, PID, TID, FORMAT, MACHINE_PID = 26, VCPU }; /* of 32 bits */
	enum { IP = 3, TIME };                                              /* of 64 bits */
	enum { OLD_MESSAGE = 32, MESSAGE = 40, MESSAGE_BYTES = 64, ITRACE = 1 };
	struct bytes body = perf_record_body(record), message;
	uint32_t format = bytes_half(body, FORMAT);
	uint64_t time_ns = format ? bytes_word(body, TIME) : 0;

	message = bytes_slice(body, format ? MESSAGE : OLD_MESSAGE, MESSAGE_BYTES);
	if (!message.size)
		return;
	(void)fprintf(out, " %s error type %u time ",
		      bytes_half(body, TYPE) == ITRACE ? "instruction trace" : "unknown AUX",
		      bytes_half(body, TYPE));
	if (time_ns)
		(void)fprintf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000,
			      time_ns % 1000000000);
	else
		(void)fputc('0', out);
	if (format >= 2 && bytes_half(body, MACHINE_PID))
		(void)fprintf(out, " machine_pid %d vcpu %d",
			      (int32_t)bytes_half(body, MACHINE_PID),
			      (int32_t)bytes_half(body, VCPU));
	(void)fprintf(out, " cpu %d pid %d tid %d ip %#" PRIx64 " code %u: ",
		      (int32_t)bytes_half(body, CPU), (int32_t)bytes_half(body, PID),
		      (int32_t)bytes_half(body, TID), bytes_word(body, IP), bytes_half(body, CODE));
	printable_write((const char *)message.data,
			strnlen((const char *)message.data, message.size), out);
}

static void print_thread_map(const struct perf_record *record, FILE *out)
{
	struct bytes body = perf_record_body(record);
	char name[17];
	int32_t tid;

	(void)fprintf(out, " nr: %" PRIu64 " thread%s: ", bytes_word(body, 0),
		      bytes_word(body, 0) > 1 ? "s" : "");
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

static void print_event_update(const struct perf_record *record, FILE *out)
{
	enum { UNIT, SCALE, NAME, CPUS, WHAT = 16 };
	struct bytes body = perf_record_body(record), what = bytes_slice(body, WHAT, body.size);
	const uint64_t kind = bytes_word(body, 0), bits = bytes_word(what, 0);
	double scale;

	(void)fprintf(out, "\n... id:    %" PRIu64, bytes_word(body, 1));
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

void perf_synth_text(const struct perf_record *record, FILE *out)
{
	switch (record->type) {
	case PERF_ID_INDEX: print_id_index(record, out); break;
	case PERF_AUXTRACE_INFO: print_auxtrace_info(record, out); break;
	case PERF_AUXTRACE: print_auxtrace(record, out); break;
	case PERF_AUXTRACE_ERROR: print_auxtrace_error(record, out); break;
	case PERF_THREAD_MAP: print_thread_map(record, out); break;
	case PERF_CPU_MAP: print_cpu_map(record, out); break;
	case PERF_EVENT_UPDATE: print_event_update(record, out); break;
	case PERF_TIME_CONV: print_time_conv(record, out); break;
	default: break;
	}
}
