#include "tests/fake_past.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/mapped_file.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_walk.h"

enum { ATTR_SIZE = 128, CPUMODE = 7, GUEST_KERNEL = 4 };

/* Bytes that the trailer of a record has. */
static size_t trailer_size(uint64_t sample_type)
{
	const uint64_t in_trailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				    PERF_SAMPLE_IDENTIFIER;

	return 8 * (size_t)__builtin_popcountll(sample_type & in_trailer);
}

/* Trace lies where its record says; what the recording left out before it is padding. */
static int add_trace(struct fake_past *past, const struct perf_item *item)
{
	const uint64_t offset = load_le(item->data + 16, 8), cpu = load_le(item->data + 40, 4);
	struct fake_stream *stream = &past->streams[cpu < FAKE_PAST_CPUS ? cpu : 0];
	uint8_t *grown;

	if (cpu >= FAKE_PAST_CPUS || offset > INT32_MAX)
		return -PTVM_BAD_INPUT;
	grown = realloc(stream->data, offset + item->payload.size);
	if (!grown)
		return -PTVM_NO_MEMORY;
	if (offset > stream->size)
		memset(grown + stream->size, 0, offset - stream->size);
	memcpy(grown + offset, item->payload.data, item->payload.size);
	*stream = (struct fake_stream){ grown, offset + item->payload.size };
	return 0;
}

static int take_traces(struct fake_past *past)
{
	struct arena arena = { 0 };
	struct perf_walk walk = { 0 };
	struct perf_item item;
	int r = 0;

	perf_walk_init(&walk, past->from, &arena);
	while (!r && !perf_walk_next(&walk, &item))
		if (item.type == PERF_AUXTRACE)
			r = add_trace(past, &item);
	perf_walk_deinit(&walk);
	arena_free(&arena);
	return r;
}

/* The part of a stream that an AUX record names. */
static struct bytes traced(const struct fake_past *past, const struct perf_record *record)
{
	struct bytes all;

	if (record->type != PERF_AUX || record->cpu < 0 || record->cpu >= FAKE_PAST_CPUS)
		return (struct bytes){ NULL, 0 };
	all = (struct bytes){ past->streams[record->cpu].data, past->streams[record->cpu].size };
	return bytes_slice(all, load_le(record->data + 8, 8), load_le(record->data + 16, 8));
}

/* A map of the guest's code: perf synthesized them when the recording began, and needs them. */
static bool is_guest_map(const struct perf_record *record)
{
	return record->type == PERF_MMAP && (record->misc & CPUMODE) == GUEST_KERNEL;
}

static void take_record(struct fake_past *past, const struct perf_record *record)
{
	const struct perf_data *from = past->from;
	const uint64_t some_id = from->events.items[0].ids[0];
	const struct perf_id *id = perf_event_find_id(from, record->id ? record->id : some_id);

	if (id && (record->time || is_guest_map(record)))
		past->records[past->record_count++] = (struct past_record){
			.data = { record->data,
				  record->size -
					  trailer_size(from->events.items[id->event].sample_type) },
			.id = record->id ? record->id : some_id,
			.time = record->time,
			.pid = record->pid,
			.tid = record->tid,
			.cpu = record->cpu,
			.type = record->type,
			.trace = traced(past, record),
		};
}

static int take_records(struct fake_past *past)
{
	const struct perf_data *from = past->from;

	past->records = calloc(from->records.count, sizeof(*past->records));
	if (!past->records || !from->events.count || !from->events.items[0].id_count)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < from->records.count; i++)
		take_record(past, &from->records.items[i]);
	return 0;
}

static int take_ids(struct fake_past *past)
{
	const struct perf_data *from = past->from;

	past->ids = calloc(from->id_index.count, sizeof(*past->ids));
	if (!past->ids)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < from->id_index.count; i++) {
		const struct perf_id_entry *entry = &from->id_index.items[i];
		const struct perf_id *id = perf_event_find_id(from, entry->id);

		if (id && from->events.items[id->event].attr.size >= ATTR_SIZE)
			past->ids[past->id_count++] =
				(struct past_id){ from->events.items[id->event].attr.data,
						  entry->id, entry->cpu, entry->tid };
	}
	return 0;
}

int fake_past_load(struct fake_past *past, const char *recording, struct ptvm_error *error)
{
	int r;

	memset(past, 0, sizeof(*past));
	past->from = calloc(1, sizeof(*past->from));
	if (!past->from)
		return -PTVM_NO_MEMORY;
	r = perf_data_open(recording, past->from, error);
	past->conv = past->from->pt.conv;
	if (!r)
		r = take_traces(past);
	if (!r)
		r = take_records(past);
	return r ? r : take_ids(past);
}

void fake_past_free(struct fake_past *past)
{
	for (size_t i = 0; i < FAKE_PAST_CPUS; i++)
		free(past->streams[i].data);
	free(past->records);
	free(past->ids);
	if (past->from)
		perf_data_close(past->from);
	free(past->from);
}

static void make_pmu(const struct perf_data *from, const struct fake_tree *tree)
{
	static const char *const files[][2] = {
		{ "type", "8" },
		{ "caps/mtc", "1" },
		{ "caps/psb_cyc", "1" },
		{ "caps/mtc_periods", "249" },
		{ "caps/psb_periods", "3f" },
		{ "caps/cycle_thresholds", "1fff" },
		{ "caps/num_address_ranges", "2" },
		{ "format/pt", "config:0" },
		{ "format/cyc", "config:1" },
		{ "format/mtc", "config:9" },
		{ "format/tsc", "config:10" },
		{ "format/noretcomp", "config:11" },
		{ "format/branch", "config:13" },
		{ "format/mtc_period", "config:14-17" },
		{ "format/cyc_thresh", "config:19-22" },
		{ "format/psb_period", "config:24-27" },
	};
	const struct pt_config *pt = &from->pt;
	char text[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		fake_tree_file(tree, files[i][1], "sys/bus/event_source/devices/intel_pt/%s",
			       files[i][0]);
	(void)snprintf(text, sizeof(text), "%u:%u", (unsigned)pt->ctc_n, (unsigned)pt->ctc_d);
	fake_tree_file(tree, text, "sys/bus/event_source/devices/intel_pt/tsc_art_ratio");
	(void)snprintf(text, sizeof(text), "%u", (unsigned)pt->max_nonturbo);
	fake_tree_file(tree, text, "sys/bus/event_source/devices/intel_pt/max_nonturbo_ratio");
}

static void make_kernel(const struct perf_data *from, const struct fake_tree *tree)
{
	static const char *const names[] = { "kallsyms", "modules", "kcore" };
	char path[PATH_MAX], name[32];
	struct bytes file;

	for (size_t i = 0; from->directory && i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/kcore_dir/%s", from->directory, names[i]);
		(void)snprintf(name, sizeof(name), "proc/%s", names[i]);
		if (mapped_file_open(path, &file, NULL))
			continue;
		fake_tree_bytes(tree, file.data, file.size, name);
		mapped_file_close(&file);
	}
}

/* A COMM from before the recording names a thread. */
static void make_thread(const struct fake_tree *tree, const struct perf_record *record)
{
	static const char arguments[] = "qemu-system-x86_64\0-enable-kvm\0-name\0small";
	const int pid = (int)load_le(record->data + 8, 4), tid = (int)load_le(record->data + 12, 4);
	const char *comm = (const char *)record->data + 16;
	char text[32];

	if (pid == tid)
		fake_tree_process(tree, pid, comm, arguments, sizeof(arguments));
	fake_tree_thread(tree, pid, tid, comm);
	(void)snprintf(text, sizeof(text), "Name:\tx\nTgid:\t%d\n", pid);
	fake_tree_file(tree, text, "proc/%d/status", tid);
}

/* An MMAP2 record becomes a line of /proc/PID/maps. */
static void add_map(const struct perf_record *record, FILE *maps)
{
	const uint8_t *data = record->data;
	const uint64_t from = load_le(data + 16, 8), size = load_le(data + 24, 8);

	(void)fprintf(maps, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:02 %" PRIu64 " %s\n",
		      from, from + size, load_le(data + 32, 8), load_le(data + 48, 8),
		      (const char *)data + 72);
}

static void make_processes(const struct perf_data *from, const struct fake_tree *tree)
{
	char *text = NULL;
	size_t size = 0;
	FILE *maps = open_memstream(&text, &size);
	uint64_t pid = 0;

	for (size_t i = 0; maps && i < from->records.count; i++) {
		const struct perf_record *record = &from->records.items[i];

		if (record->time || (record->type != PERF_COMM && record->type != PERF_MMAP2))
			continue;
		if (record->type == PERF_COMM)
			make_thread(tree, record);
		else
			add_map(record, maps);
		pid = load_le(record->data + 8, 4);
	}
	if (maps && !fclose(maps))
		fake_tree_file(tree, text, "proc/%d/maps", (int)pid);
	free(text);
}

/* The tracepoints' files in tracefs. */
static void make_points(const struct fake_tree *tree)
{
	static const char *const names[] = { "kvm_entry", "kvm_exit", "kvm_write_tsc_offset" };
	char text[1000];

	fake_tree_file(tree,
		       "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		       "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
		       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		       "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n",
		       "sys/kernel/tracing/events/header_page");
	fake_tree_file(tree, "# compressed entry header\n",
		       "sys/kernel/tracing/events/header_event");
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(text, sizeof(text), "%u\n", FAKE_PAST_KVM_ENTRY + i);
		fake_tree_file(tree, text, "sys/kernel/tracing/events/kvm/%s/id", names[i]);
		(void)snprintf(
			text, sizeof(text),
			"name: %s\nID: %u\nformat:\n"
			"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
			"\tsigned:0;\n"
			"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			"\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
			"\tfield:unsigned long rip;\toffset:16;\tsize:8;\tsigned:0;\n\n"
			"print fmt: \"vcpu %%u, rip 0x%%lx\", REC->vcpu_id, REC->rip\n",
			names[i], FAKE_PAST_KVM_ENTRY + i);
		fake_tree_file(tree, text, "sys/kernel/tracing/events/kvm/%s/format", names[i]);
	}
}

void fake_past_tree(const struct fake_past *past, const struct fake_tree *tree)
{
	fake_tree_file(tree, "0-1\n", "sys/devices/system/cpu/online");
	fake_tree_file(tree, "Name:\tx\nCapEff:\t000001ffffffffff\n", "proc/self/status");
	fake_tree_file(tree, "MemTotal: 1024 kB\n", "proc/meminfo");
	fake_tree_file(tree,
		       "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
		       "model name\t: a CPU\nstepping\t: 4\n",
		       "proc/cpuinfo");
	make_points(tree);
	make_pmu(past->from, tree);
	make_kernel(past->from, tree);
	make_processes(past->from, tree);
}
