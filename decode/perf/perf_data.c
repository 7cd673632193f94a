/* Reading goes in two steps, since records may come before what explains them (a pipe's attrs, the
 * machines in ID_INDEX): first all records are listed as they lie, then each gets its thread, CPU,
 * time and machine from its trailer. */
#include "decode/perf/perf_data.h"

#include <stdlib.h>

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/spool.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_auxtrace.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_file.h"
#include "decode/perf/perf_header.h"
#include "decode/perf/perf_order.h"
#include "decode/perf/perf_pt_info.h"
#include "decode/perf/perf_record.h"
#include "decode/perf/perf_sample.h"
#include "decode/perf/perf_walk.h"

enum { HEADER = 8 };

static struct bytes item_body(const struct perf_item *item)
{
	return (struct bytes){ item->data + HEADER, item->size - (size_t)HEADER };
}

/* A count, as many entries of four words, and in newer recordings as many of two more. */
static int read_id_index(struct perf_data *data, struct bytes body)
{
	enum { ENTRY = 32, EXTRA = 16 };
	uint64_t count, machine = 0, room = body.size / ENTRY;

	if (!bytes_read(body, 0, 8, &count) || count > room || body.size - 8 < count * ENTRY)
		return -PTVM_BAD_INPUT;
	for (uint64_t i = 0; i < count; i++) {
		struct perf_id_entry entry = { .vcpu = -1 };
		uint64_t at = 8 + i * ENTRY, extra = 8 + count * ENTRY + i * EXTRA;

		entry.id = bytes_number(body, at, 8);
		entry.idx = (int64_t)bytes_number(body, at + 8, 8);
		entry.cpu = (int64_t)bytes_number(body, at + 16, 8);
		entry.tid = (int64_t)bytes_number(body, at + 24, 8);
		if (body.size - 8 >= count * (ENTRY + EXTRA)) {
			machine = bytes_number(body, extra, 8);
			entry.vcpu = (int64_t)bytes_number(body, extra + 8, 8);
		}
		if (machine > INT32_MAX)
			return -PTVM_BAD_INPUT;
		entry.machine_pid = (int32_t)machine;
		if (!vec_push(&data->id_index, entry) ||
		    (machine && entry.tid >= 0 &&
		     !vec_push(&data->vcpus, (struct perf_vcpu){ entry.tid, entry.vcpu })))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int read_header_attr(struct perf_data *data, struct bytes body)
{
	uint32_t size = perf_event_attr_size(body);
	int r = perf_event_add(data, body, bytes_slice(body, size, body.size));

	return r < 0 ? r : 0;
}

static int read_header_feature(struct perf_data *data, struct bytes body)
{
	uint64_t feature;
	int r;

	if (!bytes_read(body, 0, 8, &feature) || feature >= PERF_FEATURES)
		return -PTVM_BAD_INPUT;
	data->features.bitmap[feature / 64] |= (uint64_t)1 << feature % 64;
	r = perf_feature_read(data, (uint32_t)feature, bytes_slice(body, 8, body.size));
	if (r != -PTVM_BAD_INPUT)
		return r;
	data->bad_features++;
	return 0;
}

SORT_BY_TWO(compare_vcpus, struct perf_vcpu, tid, vcpu)

/* The first step: take in the records that explain others, and trace. */
static int read_item(struct perf_data *data, struct perf_auxtrace *auxtrace,
		     const struct perf_item *item)
{
	struct bytes body = item_body(item);
	int r;

	switch (item->type) {
	case PERF_HEADER_ATTR: return read_header_attr(data, body);
	case PERF_HEADER_FEATURE: return read_header_feature(data, body);
	case PERF_HEADER_BUILD_ID:
		r = perf_build_id_read(data, (struct bytes){ item->data, item->size });
		return r < 0 ? r : 0;
	case PERF_ID_INDEX: return read_id_index(data, body);
	case PERF_AUXTRACE: return perf_auxtrace_add(auxtrace, item);
	case PERF_AUXTRACE_INFO:
		if (!data->auxtrace_info.size)
			data->auxtrace_info = body;
		return 0;
	case PERF_TRACING_DATA:
		data->features.payloads[PERF_FEATURE_TRACING_DATA] = item->payload;
		return 0;
	default: return 0;
	}
}

/* Whether anybody but this file asks for such records. */
static bool is_listed(uint32_t type)
{
	return type != PERF_AUXTRACE && type != PERF_FINISHED_ROUND && type != PERF_COMPRESSED &&
	       type != PERF_COMPRESSED2;
}

static int list_item(struct perf_data *data, const struct perf_item *item)
{
	struct perf_record record = {
		.data = item->data,
		.file_offset = item->file_offset,
		.pid = -1,
		.tid = -1,
		.cpu = -1,
		.type = (uint16_t)item->type,
		.misc = item->misc,
		.size = item->size,
	};

	if (!is_listed(item->type))
		return 0;
	return spool_push(&data->records, record) ? 0 : -PTVM_NO_MEMORY;
}

static int list_all(struct perf_data *data, struct perf_auxtrace *auxtrace, struct perf_walk *walk)
{
	struct record_trail trail = perf_data_trail(data);
	struct perf_item item;
	int r;

	while (!(r = perf_walk_next(walk, &item))) {
		perf_data_step(&trail, item.data, item.size);
		r = read_item(data, auxtrace, &item);
		data->bad_records += r == -PTVM_BAD_INPUT;
		if (r == -PTVM_NO_MEMORY || list_item(data, &item) < 0)
			return -PTVM_NO_MEMORY;
	}
	return r == -PTVM_END ? 0 : r;
}

static int read_records(struct perf_data *data, struct perf_auxtrace *auxtrace)
{
	struct perf_walk walk;
	int r;

	data->unpacked.is_spooled = true;
	perf_walk_init(&walk, data, &data->unpacked);
	r = list_all(data, auxtrace, &walk);
	data->truncated = walk.truncated;
	data->bad_reason = walk.bad_reason;
	data->bad_offset = walk.bad_offset;
	data->skipped_bytes = walk.skipped_bytes;
	perf_walk_deinit(&walk);
	sort_vec(&data->vcpus, compare_vcpus);
	return r;
}

int perf_data_explain(const struct perf_data *data, struct perf_record *record,
		      struct perf_sample *ret)
{
	const struct perf_event *event = data->events.items;
	struct bytes body = perf_record_body(record);
	bool is_sample = record->type == PERF_SAMPLE;
	const struct perf_id *id;
	int r;

	*ret = (struct perf_sample){ .pid = -1, .tid = -1, .cpu = -1 };
	if (record->type >= PERF_HEADER_ATTR || !event)
		return 0;
	/* As in perf, id 0 and unknown ids count as the first event's. */
	record->id = is_sample ? perf_sample_id(event, body) : perf_trailer_id(event, body);
	id = perf_event_find_id(data, record->id);
	if (id) {
		event = &data->events.items[id->event];
		record->machine_pid = id->machine_pid;
	}
	r = is_sample ? perf_sample_read(event, body, ret) : perf_trailer_read(event, body, ret);
	record->time = ret->time == UINT64_MAX ? 0 : ret->time;
	record->pid = ret->pid;
	record->tid = ret->tid;
	record->cpu = ret->cpu;
	return r;
}

static void count_lost(struct perf_data *data, const struct perf_record *record)
{
	struct perf_lost lost;

	if (record->type == PERF_LOST && !perf_lost_read(record, &lost))
		data->lost_records += lost.count;
}

static int explain_all(struct perf_data *data, struct perf_auxtrace *auxtrace)
{
	struct record_trail trail = perf_data_trail(data);

	for (size_t i = 0; i < data->records.count; i++) {
		struct perf_record *record = &data->records.items[i];
		struct perf_sample sample;
		int r = perf_data_explain(data, record, &sample);

		perf_data_step(&trail, record->data, record->size);
		data->bad_records += r < 0;
		count_lost(data, record);
		r = perf_auxtrace_add_sample(auxtrace, data, record, sample.aux);
		data->bad_records += r == -PTVM_BAD_INPUT;
		if (r == -PTVM_NO_MEMORY)
			return r;
	}
	return 0;
}

/* EVENT_UPDATE of kind "name": how a pipe tells what its events are called. */
static int name_events(struct perf_data *data)
{
	enum { KIND_NAME = 2, TEXT = 16 };
	struct record_trail trail = perf_data_trail(data);

	for (size_t i = 0; i < data->records.count; i++) {
		const struct perf_record *record = &data->records.items[i];
		struct bytes body = perf_record_body(record);
		uint64_t kind, id;
		const char *name;

		perf_data_step(&trail, record->data, record->size);
		if (record->type != PERF_EVENT_UPDATE || !bytes_read(body, 0, 8, &kind) ||
		    kind != KIND_NAME || !bytes_read(body, 8, 8, &id) || body.size <= TEXT)
			continue;
		name = arena_strndup(&data->arena, (const char *)body.data + TEXT,
				     strnlen((const char *)body.data + TEXT, body.size - TEXT));
		if (!name)
			return -PTVM_NO_MEMORY;
		perf_event_name(data, id, name);
	}
	return 0;
}

/* The trace is nearly all of a file, and must not be read to open it; only snapshots are, which may
 * repeat each other. */
static int read_data(struct perf_data *data, struct perf_auxtrace *auxtrace)
{
	int r;

	aux_pages_expect(&data->mapping, PAGES_SCATTERED);
	r = read_records(data, auxtrace);
	if (!r)
		r = perf_event_index_ids(data);
	if (!r)
		r = name_events(data);
	if (r < 0)
		return r;
	perf_pt_info_read(data);
	if (data->pt.snapshot)
		aux_pages_expect(&data->mapping, PAGES_NEARBY);
	r = explain_all(data, auxtrace);
	if (!r)
		r = perf_order(&data->records);
	return r < 0 ? r : perf_auxtrace_finish(auxtrace, data);
}

/* Whether records are also in the other files of the directory: the header says so, if the recorder
 * came to complete it. */
static bool has_parts(const struct perf_data *data)
{
	enum { BY_THREADS = 1 };
	uint64_t version;

	if (!data->data_size)
		return !data->is_pipe;
	return bytes_read(data->features.payloads[PERF_FEATURE_DIR_FORMAT], 0, 8, &version) &&
	       version == BY_THREADS;
}

static int open_mapped(struct perf_data *data, struct ptvm_error *error)
{
	struct perf_auxtrace auxtrace = { 0 };
	int r = perf_header_read(data, error);

	if (!has_parts(data))
		perf_file_drop_parts(data);
	if (!r)
		r = read_data(data, &auxtrace);
	perf_auxtrace_deinit(&auxtrace);
	aux_pages_expect(&data->mapping, PAGES_NEARBY);
	return r;
}

int perf_data_open(const char *path, struct perf_data *ret, struct ptvm_error *error)
{
	int r;

	*ret = (struct perf_data){ 0 };
	r = perf_file_open(path, ret, error);
	return r < 0 ? r : open_mapped(ret, error);
}

int perf_data_open_bytes(struct bytes file, struct perf_data *ret, struct ptvm_error *error)
{
	*ret = (struct perf_data){ .file = file };
	return open_mapped(ret, error);
}

void perf_data_close(struct perf_data *data)
{
	for (size_t i = 0; i < data->queues.count; i++) {
		free(data->queues.items[i].spans);
		free(data->queues.items[i].losses);
		free(data->queues.items[i].repeats);
	}
	vec_free(&data->events);
	spool_vec_free(&data->records);
	vec_free(&data->queues);
	vec_free(&data->build_ids);
	vec_free(&data->id_index);
	vec_free(&data->vcpus);
	vec_free(&data->ids);
	vec_free(&data->aux_index);
	perf_file_close(data);
	arena_free(&data->arena);
	arena_free(&data->unpacked);
	*data = (struct perf_data){ 0 };
}

struct record_trail perf_data_trail(const struct perf_data *data)
{
	return (struct record_trail){ .data = data, .file = { .mapping = &data->mapping } };
}

void perf_data_rest(const struct perf_data *data)
{
	spool_vec_rest(&data->records);
	arena_rest(&data->unpacked);
}

void perf_data_step(struct record_trail *trail, const uint8_t *record, size_t size)
{
	enum { AT_ONCE = 4 << 20 }; /* bytes */

	page_trail_leap(&trail->file, record);
	trail->held += sizeof(struct perf_record) + size;
	if (trail->held < AT_ONCE)
		return;
	trail->held = 0;
	perf_data_rest(trail->data);
}

const char *perf_data_place(const struct perf_data *data, uint64_t *offset)
{
	for (size_t i = data->parts.count; i--;) {
		const struct perf_part *part = &data->parts.items[i];

		if (*offset >= part->offset) {
			*offset -= part->offset;
			return part->path;
		}
	}
	return data->file_path ? data->file_path : "-";
}

int64_t perf_data_vcpu(const struct perf_data *data, int32_t tid)
{
	size_t i = search_sorted(data->vcpus.count, k, data->vcpus.items[k].tid < tid);

	return i < data->vcpus.count && data->vcpus.items[i].tid == tid ? data->vcpus.items[i].vcpu
									: -1;
}
