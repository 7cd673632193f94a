#include "decode/perf_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decode/base/spool.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_order.h"
#include "decode/perf/perf_sample.h"
#include "decode/perf/perf_walk.h"
#include "decode/print/perf_text.h"

struct dump {
	const struct perf_data *data;
	const struct perf_dump_options *options;
	FILE *out;
	bool has_cpu, has_time, has_trailers; /* of any event */
	/* Records with a time wait here until no earlier one can come. At a FINISHED_ROUND this is
	 * certain for all up to the last time of the round before (`flush_time`). */
	struct perf_records waiting;
	uint64_t last_time, flush_time;
	struct arena unpacked;
	struct page_trail trail;
	size_t held; /* bytes printed since pages of these tables were given back */
};

enum { COLUMNS = 16 };

/* One line: offset, 16 bytes, and the same as text. */
static void print_row(const struct perf_record *record, unsigned offset, FILE *out)
{
	static const char digits[] = "0123456789abcdef";
	char line[7 + 3 + 3 * COLUMNS + 2 + COLUMNS + 1], *p = line;

	p += sprintf(p, ".  %04x: ", offset);
	for (unsigned i = offset; i < offset + COLUMNS; i++) {
		*p++ = ' ';
		*p++ = i < record->size ? digits[record->data[i] >> 4] : ' ';
		*p++ = i < record->size ? digits[record->data[i] & 15] : ' ';
	}
	*p++ = ' ';
	*p++ = ' ';
	for (unsigned i = offset; i < offset + COLUMNS; i++) {
		uint8_t byte = i < record->size ? record->data[i] : ' ';

		*p++ = i >= record->size ? ' ' : byte >= 32 && byte < 127 ? (char)byte : '.';
	}
	*p++ = '\n';
	(void)fwrite(line, 1, (size_t)(p - line), out);
}

/* The offset of a record as perf shows it: in a pipe it counts from the first record. */
static uint64_t shown_offset(const struct dump *dump, const struct perf_record *record)
{
	uint64_t offset = record->file_offset;

	(void)perf_data_place(dump->data, &offset);
	return offset - (dump->data->is_pipe ? dump->data->data_offset : 0);
}

static void print_bytes(const struct dump *dump, const struct perf_record *record)
{
	uint64_t place = record->file_offset;
	const char *path = perf_data_place(dump->data, &place);

	(void)fprintf(dump->out, "\n%#" PRIx64 "@%s [%#x]: event: %u\n", shown_offset(dump, record),
		      dump->data->is_pipe ? "pipe" : path, record->size, record->type);
	(void)fprintf(dump->out, ".\n. ... raw event: size %u bytes\n", record->size);
	for (unsigned offset = 0; offset < record->size; offset += COLUMNS)
		print_row(record, offset, dump->out);
	(void)fputc('\n', dump->out);
}

/* CPU and time as perf shows them: left out where no event records them, all ones where this
 * record's event does not, and 0 in the recorder's own records. */
static void print_stamp(const struct dump *dump, const struct perf_record *record, bool has_time)
{
	bool is_own = record->type >= PERF_HEADER_ATTR;

	if (!dump->has_trailers && record->type != PERF_SAMPLE) {
		(void)fputs("-1 -1 ", dump->out);
		return;
	}
	if (dump->has_cpu)
		(void)fprintf(dump->out, "%u ", is_own ? 0 : (uint32_t)record->cpu);
	if (dump->has_time)
		(void)fprintf(dump->out, "%" PRIu64 " ",
			      is_own || has_time ? record->time : UINT64_MAX);
}

static const struct perf_event *event_of(const struct dump *dump, const struct perf_record *record)
{
	const struct perf_id *id = perf_event_find_id(dump->data, record->id);

	if (!dump->data->events.count)
		return NULL;
	return &dump->data->events.items[id ? id->event : 0];
}

static void print_packets(const struct dump *dump, struct bytes trace)
{
	if (!dump->options->print_packets)
		return;
	(void)fprintf(dump->out, ".\n. ... Intel Processor Trace data: size %zu bytes\n",
		      trace.size);
	dump->options->print_packets(dump->options->context, trace.data, trace.size);
}

/* Give pages of what was printed back now and then. */
static void rest(struct dump *dump, size_t printed)
{
	enum { AT_ONCE = 4 << 20 };

	dump->held += sizeof(struct perf_record) + printed;
	if (dump->held < AT_ONCE)
		return;
	dump->held = 0;
	spool_vec_rest(&dump->waiting);
	arena_rest(&dump->unpacked);
}

static void print_record(struct dump *dump, const struct perf_record *record)
{
	const struct perf_event *event = event_of(dump, record);
	struct perf_record copy = *record;
	struct perf_sample sample;

	print_bytes(dump, record);
	print_stamp(dump, record, event && (event->sample_type & PERF_SAMPLE_TIME));
	(void)fprintf(dump->out, "%#" PRIx64 " [%#x]: PERF_RECORD_%s", shown_offset(dump, record),
		      record->size, perf_text_name(record->type));
	perf_text_print(record, event, dump->options->host, dump->out);
	rest(dump, record->size);
	if (record->type != PERF_SAMPLE)
		return;
	(void)perf_data_explain(dump->data, &copy, &sample);
	if (sample.aux.size)
		print_packets(dump, sample.aux);
}

/* Print what waits up to `limit`, in order of time. */
static int flush(struct dump *dump, uint64_t limit)
{
	size_t done = 0;

	if (perf_order(&dump->waiting) < 0)
		return -PTVM_NO_MEMORY;
	while (done < dump->waiting.count && dump->waiting.items[done].time <= limit)
		print_record(dump, &dump->waiting.items[done++]);
	dump->waiting.count -= done;
	if (done)
		memmove(dump->waiting.items, dump->waiting.items + done,
			dump->waiting.count * sizeof(*dump->waiting.items));
	return 0;
}

static int end_round(struct dump *dump)
{
	int r = flush(dump, dump->flush_time);

	dump->flush_time = dump->last_time;
	return r;
}

/* Records without a time were made up by the recorder, and their CPU means nothing. */
static bool is_wanted(const struct dump *dump, const struct perf_record *record)
{
	enum { AUXTRACE_CPU = 40 };
	int32_t cpu = record->time ? record->cpu : -1;
	uint64_t field;

	if (record->type == PERF_AUXTRACE &&
	    bytes_read((struct bytes){ record->data, record->size }, AUXTRACE_CPU, 4, &field))
		cpu = (int32_t)(uint32_t)field;
	return cpu < 0 || number_ranges_has(&dump->options->cpus, cpu);
}

static int dump_item(struct dump *dump, const struct perf_item *item)
{
	struct perf_record record = {
		.data = item->data,
		.file_offset = item->file_offset,
		.type = (uint16_t)item->type,
		.misc = item->misc,
		.size = item->size,
	};
	struct perf_sample sample;

	if (item->type == PERF_COMPRESSED || item->type == PERF_COMPRESSED2)
		return 0;
	(void)perf_data_explain(dump->data, &record, &sample);
	if (record.time > dump->last_time)
		dump->last_time = record.time;
	if (!is_wanted(dump, &record))
		return 0;
	if (record.time)
		return spool_push(&dump->waiting, record) ? 0 : -PTVM_NO_MEMORY;
	print_record(dump, &record);
	if (item->type == PERF_AUXTRACE)
		print_packets(dump, item->payload);
	return item->type == PERF_FINISHED_ROUND ? end_round(dump) : 0;
}

static int dump_all(struct dump *dump, struct perf_walk *walk)
{
	struct perf_item item;
	int r = 0;

	while (!r && !ferror(dump->out)) {
		r = perf_walk_next(walk, &item);
		if (r == -PTVM_END)
			return flush(dump, UINT64_MAX);
		if (r)
			break;
		page_trail_step(&dump->trail, item.data);
		r = dump_item(dump, &item);
	}
	return r;
}

int perf_dump(const struct perf_data *data, const struct perf_dump_options *options, FILE *out)
{
	struct dump dump = {
		.data = data,
		.options = options,
		.out = out,
		.unpacked = { .is_spooled = true },
		.trail = { .mapping = &data->mapping },
	};
	struct perf_walk walk;
	int r;

	for (size_t i = 0; i < data->events.count; i++) {
		const struct perf_event *event = &data->events.items[i];

		dump.has_cpu |= event->sample_type & PERF_SAMPLE_CPU;
		dump.has_time |= event->sample_type & PERF_SAMPLE_TIME;
		dump.has_trailers |= event->flags & PERF_FLAG_SAMPLE_ID_ALL;
	}
	perf_walk_init(&walk, data, &dump.unpacked);
	r = dump_all(&dump, &walk);
	perf_walk_deinit(&walk);
	arena_free(&dump.unpacked);
	spool_vec_free(&dump.waiting);
	return !r && ferror(out) ? -PTVM_SYSTEM : r;
}
