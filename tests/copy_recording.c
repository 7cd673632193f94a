/* copy_recording FROM TO finished|cut|begun PID TID VCPU: writes the file TO as a recorder would,
 * with the events, records and trace of the recording FROM; `cut` ends as one that was killed.
 * What recording_start writes is `begun` anew, with the guest that process PID runs, whose files
 * are in FROM. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_walk.h"
#include "host/machine/build_ids.h"
#include "host/record/guest_event.h"
#include "host/record/recording_out.h"
#include "host/record/recording_start.h"
#include "tests/taken_events.h"

enum { MAX_FEATURES = 32, BUILD_ID = 2, INDEX = 18, PIECE = 1001 };

/* The guest that the recording names, if any. */
struct guest {
	pid_t pid;
	struct guest_event event;
};

static int make_guest(char **argv, const struct perf_data *from, struct guest *ret)
{
	const struct guest_vcpu vcpu = { atoi(argv[4]), atoi(argv[5]), (unsigned)atoi(argv[6]) };
	bool has_lost = from->events.items[0].read_format & 1 << 4;

	ret->pid = vcpu.machine_pid;
	return guest_event_make(has_lost, &vcpu, 1, &ret->event);
}

static int create(const struct perf_data *from, const struct guest *guest, const char *path,
		  struct recording_out *to, struct ptvm_error *error)
{
	struct taken_events events;
	int r = taken_events_of(from, &events, error);

	if (r)
		return r;
	if (guest->pid)
		events.items[events.count++] = guest_event_describe(&guest->event);
	return recording_out_create(to, path, events.items, events.count, error);
}

/* All ids of the recording, and those of the guest. Returns NULL or what to free. */
static struct start_id *all_ids(const struct perf_data *from, const struct guest *guest)
{
	const struct perf_id_entry *entry = from->id_index.items;
	struct start_id *ids = calloc(from->id_index.count + guest->event.count, sizeof(*ids));

	for (size_t i = 0; ids && i < from->id_index.count; i++, entry++)
		ids[i] = (struct start_id){ entry->id,
					    (uint64_t)entry->idx,
					    (int32_t)entry->cpu,
					    (int32_t)entry->tid,
					    0,
					    -1 };
	if (ids)
		memcpy(ids + from->id_index.count, guest->event.all,
		       guest->event.count * sizeof(*ids));
	return ids;
}

/* The place of the host's kernel is read from the recording's files as if they were in /proc. */
static int begin(const struct perf_data *from, const struct guest *guest, struct recording_out *to,
		 struct ptvm_error *error)
{
	static const struct pt_pmu terms = { .terms = { { "cyc", 1, 1 },
							{ "mtc", 9, 9 },
							{ "tsc", 10, 10 },
							{ "noretcomp", 11, 11 },
							{ "mtc_period", 14, 17 } },
					     .term_count = 5 };
	struct pt_pmu pmu = terms;
	char host[PATH_MAX], directory[PATH_MAX];
	const struct roots roots = { .proc = host };
	const struct start_guest started = { guest->pid, directory };
	struct recording_start start = { .conv = from->pt.conv,
					 .id_count = from->id_index.count + guest->event.count,
					 .pmu = &pmu,
					 .guests = &started,
					 .guest_count = 1 };
	struct start_id *ids = all_ids(from, guest);
	int r;

	if (!ids)
		return -PTVM_NO_MEMORY;
	(void)snprintf(host, sizeof(host), "%s/kcore_dir", from->path);
	(void)snprintf(directory, sizeof(directory), "%s/kcore_dir__%d", from->path, guest->pid);
	start.ids = ids;
	pmu.type = from->events.items[0].type;
	pmu.tsc_ratio = from->pt.ctc_n;
	pmu.crystal_ratio = from->pt.ctc_d;
	pmu.max_nonturbo_ratio = from->pt.max_nonturbo;
	r = recording_start_write(&roots, &start, to, error);
	free(ids);
	return r;
}

/* begin() has written these already. */
static bool is_begun(const struct perf_item *item)
{
	return item->type == PERF_TIME_CONV || item->type == PERF_ID_INDEX ||
	       item->type == PERF_AUXTRACE_INFO || item->type == PERF_MMAP;
}

/* The trace is written in pieces of odd sizes, each in two parts, as a ring hands it out. */
static int copy_trace(const struct perf_item *item, struct recording_out *to,
		      struct ptvm_error *error)
{
	struct recording_trace trace = {
		.offset = load_le(item->data + 16, 8),
		.reference = load_le(item->data + 24, 8),
		.queue = (uint32_t)load_le(item->data + 32, 4),
		.tid = (int32_t)load_le(item->data + 36, 4),
		.cpu = (int32_t)load_le(item->data + 40, 4),
	};
	struct ring_bytes bytes;
	struct bytes part;
	int r = 0;

	for (uint64_t at = 0; at < item->payload.size && !r; at += part.size) {
		part = bytes_slice(item->payload, at, 8 * PIECE);
		bytes = (struct ring_bytes){ part.data, part.data + part.size / 3, part.size / 3,
					     part.size - part.size / 3, 0 };
		r = recording_out_trace(to, &trace, &bytes, error);
		trace.offset += part.size;
	}
	return r;
}

static int copy_items(const struct perf_data *from, bool without_begin, struct recording_out *to,
		      struct ptvm_error *error)
{
	struct arena arena = { 0 };
	struct perf_walk walk = { 0 };
	struct perf_item item;
	int r = 0;

	perf_walk_init(&walk, from, &arena);
	while (!r && !perf_walk_next(&walk, &item)) {
		const struct ring_bytes bytes = { .first = item.data, .first_size = item.size };

		if (without_begin && is_begun(&item))
			continue;
		if (item.type == PERF_AUXTRACE)
			r = copy_trace(&item, to, error);
		else if (item.type == PERF_FINISHED_ROUND)
			r = recording_out_round(to, error);
		else
			r = recording_out_records(to, &bytes, error);
	}
	perf_walk_deinit(&walk);
	arena_free(&arena);
	return r;
}

/* The build id of the guest's kernel, which FROM does not have. */
static int add_build_id(const struct guest *guest, struct recording_feature *ret)
{
	struct build_ids ids = { 0 };
	void *data;
	int r = build_ids_add_guest(&ids, guest->pid, "000102030405060708090a0b0c0d0e0f10111213");

	if (!r)
		r = build_ids_section(&ids, &data, &ret->size);
	build_ids_free(&ids);
	ret->number = BUILD_ID;
	ret->data = r ? NULL : data;
	return r;
}

static int finish(const struct perf_data *from, const struct guest *guest, struct recording_out *to,
		  struct ptvm_error *error)
{
	struct recording_feature features[MAX_FEATURES] = { 0 };
	size_t count = 0;
	int r = 0;

	if (guest->pid)
		r = add_build_id(guest, &features[count++]);
	for (unsigned i = count ? BUILD_ID + 1 : 1; i < MAX_FEATURES; i++)
		if (i != INDEX && from->features.payloads[i].size)
			features[count++] =
				(struct recording_feature){ i, from->features.payloads[i].data,
							    from->features.payloads[i].size };
	if (!r)
		r = recording_out_finish(to, features, count, error);
	if (guest->pid)
		free((void *)(uintptr_t)features[0].data);
	return r;
}

static int copy(char **argv, struct perf_data *from, struct guest *guest, struct recording_out *to,
		struct ptvm_error *error)
{
	bool is_begun_anew = !strcmp(argv[3], "begun");
	int r;

	r = perf_data_open(argv[1], from, error);
	if (!r && is_begun_anew)
		r = make_guest(argv, from, guest);
	if (!r)
		r = create(from, guest, argv[2], to, error);
	if (!r && is_begun_anew)
		r = begin(from, guest, to, error);
	if (!r)
		r = copy_items(from, is_begun_anew, to, error);
	if (!r && strcmp(argv[3], "cut") != 0)
		r = finish(from, guest, to, error);
	return r;
}

int main(int argc, char **argv)
{
	struct recording_out to = { 0 };
	struct ptvm_error error = { 0 };
	struct perf_data from = { 0 };
	struct guest guest = { 0 };
	int r;

	if (argc != 4 && argc != 7)
		return 2;
	r = copy(argv, &from, &guest, &to, &error);
	if (r)
		(void)fprintf(stderr, "copy_recording: %s\n", error.message);
	recording_out_close(&to);
	guest_event_free(&guest.event);
	perf_data_close(&from);
	return r ? 1 : 0;
}
