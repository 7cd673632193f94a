#include "decode/print/record_lines.h"

#include <inttypes.h>

#include "decode/base/error.h"
#include "decode/code/machines.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_record.h"
#include "decode/print/perf_text.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_line.h"

static bool is_wanted(const struct print_config *config, const struct perf_record *record)
{
	static const uint16_t kinds[] = {
		[PERF_SWITCH] = RECORDS_SWITCH,
		[PERF_SWITCH_CPU_WIDE] = RECORDS_SWITCH,
		[PERF_COMM] = RECORDS_TASK,
		[PERF_FORK] = RECORDS_TASK,
		[PERF_EXIT] = RECORDS_TASK,
		[PERF_MMAP] = RECORDS_MMAP,
		[PERF_MMAP2] = RECORDS_MMAP,
		[PERF_LOST] = RECORDS_LOST,
		[PERF_SAMPLE] = RECORDS_SAMPLE,
		[PERF_NAMESPACES] = RECORDS_NAMESPACE,
		[PERF_KSYMBOL] = RECORDS_BPF | RECORDS_TEXT_POKE,
		[PERF_BPF_EVENT] = RECORDS_BPF,
		[PERF_CGROUP] = RECORDS_CGROUP,
		[PERF_TEXT_POKE] = RECORDS_TEXT_POKE,
	};

	return record->type < sizeof(kinds) / sizeof(*kinds) &&
	       kinds[record->type] & config->records &&
	       (record->cpu < 0 || number_ranges_has(&config->cpus, record->cpu));
}

/* The thread that a record is about. Its trailer only says which thread ran; those of records that
 * were made at the start do not even say that. */
static void thread_of(const struct perf_record *record, int32_t *pid, int32_t *tid)
{
	struct perf_mmap map;
	struct perf_comm comm;
	struct perf_task task;

	*pid = record->pid;
	*tid = record->tid;
	if ((record->type == PERF_MMAP || record->type == PERF_MMAP2) &&
	    !perf_mmap_read(record, &map)) {
		*pid = map.pid;
		*tid = map.tid;
	} else if (record->type == PERF_COMM && !perf_comm_read(record, &comm)) {
		*pid = comm.pid;
		*tid = comm.tid;
	} else if ((record->type == PERF_FORK || record->type == PERF_EXIT) &&
		   !perf_task_read(record, &task)) {
		*pid = task.pid;
		*tid = task.tid;
	} else if (record->type == PERF_NAMESPACES) {
		(void)perf_thread_read(record, pid, tid);
	}
}

static const char *comm_of(const struct record_lines *lines, const struct perf_record *record,
			   int32_t pid, int32_t tid, char guest[32])
{
	unsigned mode = record->misc & PERF_MISC_CPUMODE;

	if (mode == PERF_CPUMODE_GUEST_KERNEL || mode == PERF_CPUMODE_GUEST_USER) {
		(void)snprintf(guest, 32, "[guest/%d]",
			       record->machine_pid ? record->machine_pid : pid);
		return guest;
	}
	return sideband_comm_by(lines->config->sideband, tid,
				record - lines->config->data->records.items);
}

/* The event that a record came with, where there is no trace: its line then looks like those of the
 * event's samples. */
static const struct perf_event *event_of(const struct perf_data *data,
					 const struct perf_record *record)
{
	const struct perf_id *id = perf_event_find_id(data, record->id);

	if (data->have_pt || !data->events.count)
		return NULL;
	return &data->events.items[id ? id->event : 0];
}

/* What a line begins with, as far as the record knows it. */
static void add_prefix(struct record_lines *lines, const struct perf_record *record)
{
	enum { NAME_COLUMNS = 16 };
	const struct print_config *config = lines->config;
	const struct perf_event *event = event_of(config->data, record);
	uint32_t fields = event ? config->sample_fields[sample_kind(event)] : 0;
	bool has_chain = fields & FIELD_IP && event->sample_type & PERF_SAMPLE_CALLCHAIN;
	int32_t pid, tid;
	char guest[32];

	if (!fields)
		fields = config->fields;
	thread_of(record, &pid, &tid);
	if (fields & FIELD_COMM)
		prefix_add_comm(&lines->text, comm_of(lines, record, pid, tid, guest), tid,
				has_chain ? 0 : NAME_COLUMNS);
	prefix_add_thread(&lines->text, fields & (FIELD_PID | FIELD_TID), NULL, record->pid,
			  record->tid);
	if (fields & FIELD_CPU)
		prefix_add_cpu(&lines->text, record->cpu);
	if (fields & FIELD_TIME)
		prefix_add_time(&lines->text, config, record->time);
}

/* As in a dump; only of lost records perf says less here. */
static void print_words(const struct perf_record *record, struct machine *host, FILE *out)
{
	struct perf_lost lost;

	if (record->type == PERF_LOST && !perf_lost_read(record, &lost))
		(void)fprintf(out, " lost %" PRIu64 "\n", lost.count);
	else
		perf_text_print(record, NULL, host, out);
}

static void add_line(struct record_lines *lines, const struct perf_record *record)
{
	add_prefix(lines, record);
	text_puts(&lines->text, "PERF_RECORD_");
	text_puts(&lines->text, perf_text_name(record->type));
	rewind(lines->stream);
	print_words(record, lines->config->machines->host, lines->stream);
	if (!fflush(lines->stream))
		text_add(&lines->text, lines->words, lines->words_size);
}

void record_lines_make(struct record_lines *lines, const struct sample_origin *origin)
{
	const struct perf_record *record = &lines->config->data->records.items[lines->next - 1];

	lines->text.size = 0;
	if (record->type == PERF_SAMPLE)
		sample_line_add(&lines->text, lines->config, record, origin, &lines->points);
	else
		add_line(lines, record);
	lines->left_out |= !lines->text.size;
}

void record_lines_next(struct record_lines *lines)
{
	const struct perf_data *data = lines->config->data;

	lines->time_ns = UINT64_MAX;
	while (lines->stream && lines->next < data->records.count) {
		const struct perf_record *record = &data->records.items[lines->next++];

		if (!is_wanted(lines->config, record))
			continue;
		/* without times in the trace, its lines come after all records */
		lines->time_ns = lines->config->timeless ? 0 : record->time;
		return;
	}
}

static bool has_tracepoints(const struct perf_data *data)
{
	for (size_t i = 0; i < data->events.count; i++)
		if (sample_kind(&data->events.items[i]) == EVENT_TRACEPOINT)
			return true;
	return false;
}

int record_lines_init(struct record_lines *lines, const struct print_config *config)
{
	*lines = (struct record_lines){ .config = config, .time_ns = UINT64_MAX };
	if (!config->records || !config->data)
		return 0;
	lines->stream = open_memstream(&lines->words, &lines->words_size);
	if (!lines->stream)
		return -PTVM_NO_MEMORY;
	if (config->records & RECORDS_SAMPLE &&
	    config->sample_fields[EVENT_TRACEPOINT] & FIELD_TRACE && has_tracepoints(config->data))
		tracepoint_text_start(&lines->points,
				      config->data->features.payloads[PERF_FEATURE_TRACING_DATA],
				      config->machines);
	record_lines_next(lines);
	return 0;
}

void record_lines_free(struct record_lines *lines)
{
	tracepoint_text_stop(&lines->points);
	if (lines->stream)
		(void)fclose(lines->stream);
	free(lines->words);
	text_free(&lines->text);
}
