/* copy_recording FROM TO finished|cut: writes the file TO as a recorder would, with the events,
 * records and trace of the recording FROM; `cut` ends as one that was killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/perf_data.h"
#include "decode/perf_walk.h"
#include "host/recording_out.h"

enum { MAX_EVENTS = 64, MAX_FEATURES = 32, INDEX = 18, PIECE = 1001 };

static int create(const struct perf_data *from, const char *path, struct recording_out *to,
		  struct ptvm_error *error)
{
	static uint8_t attrs[MAX_EVENTS][RECORDING_ATTR_SIZE];
	struct recording_event events[MAX_EVENTS];
	size_t count = 0;

	for (; count < from->events.count && count < MAX_EVENTS; count++) {
		const struct perf_event *event = &from->events.items[count];

		if (event->attr.size < RECORDING_ATTR_SIZE)
			return ptvm_fail(error, PTVM_BAD_INPUT, "%s: an attr is short", from->path);
		memcpy(attrs[count], event->attr.data, RECORDING_ATTR_SIZE);
		events[count] =
			(struct recording_event){ attrs[count], event->ids, event->id_count };
	}
	return recording_out_create(to, path, events, count, error);
}

/* Trace comes in pieces of odd sizes, and each of them in two, as out of a ring. */
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

static int copy_items(const struct perf_data *from, struct recording_out *to,
		      struct ptvm_error *error)
{
	struct arena arena = { 0 };
	struct perf_walk walk = { 0 };
	struct perf_item item;
	int r = 0;

	perf_walk_init(&walk, from, &arena);
	while (!r && !perf_walk_next(&walk, &item)) {
		const struct ring_bytes bytes = { .first = item.data, .first_size = item.size };

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

static int finish(const struct perf_data *from, struct recording_out *to, struct ptvm_error *error)
{
	struct recording_feature features[MAX_FEATURES];
	size_t count = 0;

	for (unsigned i = 1; i < MAX_FEATURES; i++)
		if (i != INDEX && from->features.payloads[i].size)
			features[count++] =
				(struct recording_feature){ i, from->features.payloads[i].data,
							    from->features.payloads[i].size };
	return recording_out_finish(to, features, count, error);
}

static int copy(char **argv, struct perf_data *from, struct recording_out *to,
		struct ptvm_error *error)
{
	int r;

	r = perf_data_open(argv[1], from, error);
	if (!r)
		r = create(from, argv[2], to, error);
	if (!r)
		r = copy_items(from, to, error);
	if (!r && !strcmp(argv[3], "finished"))
		r = finish(from, to, error);
	return r;
}

int main(int argc, char **argv)
{
	struct recording_out to = { 0 };
	struct ptvm_error error = { 0 };
	struct perf_data from = { 0 };
	int r;

	if (argc != 4)
		return 2;
	r = copy(argv, &from, &to, &error);
	if (r)
		(void)fprintf(stderr, "copy_recording: %s\n", error.message);
	recording_out_close(&to);
	perf_data_close(&from);
	return r ? 1 : 0;
}
