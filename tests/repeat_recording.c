/* repeat_recording FROM TO COPIES: writes the file TO with the records and trace of the recording
 * FROM so many times over, each copy later than the one before, as if the machine had gone on doing
 * the same. Times, TSCs and the kernel's counts of trace bytes go on rising; a copy is later by so
 * many turns of the crystal's counter that TMA and MTC packets need no change. For recordings of a
 * whole stretch of time, not for snapshots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_record.h"
#include "decode/pt/pt_cursor.h"
#include "host/record/recording_out.h"
#include "tests/taken_events.h"

enum { MAX_FEATURES = 32, INDEX = 18 };
enum { CTC_TURNS = 1 << 20, TSC_BYTES = 7 };

/* One queue's trace in memory, and where in it TSC packets have their bytes. */
struct tape {
	const struct aux_queue *queue;
	uint8_t *bytes;
	struct {
		uint64_t *items;
		size_t count, room;
	} stamps;
};

struct repeat {
	struct perf_data from;
	struct recording_out to;
	struct tape *tapes;
	uint64_t ticks, ns; /* between two copies */
};

static uint64_t last_time(const struct perf_data *data)
{
	return data->records.count ? data->records.items[data->records.count - 1].time : 0;
}

/* The time of the first record that is not of the start. */
static uint64_t first_time(const struct perf_data *data)
{
	for (size_t i = 0; i < data->records.count; i++)
		if (data->records.items[i].time)
			return data->records.items[i].time;
	return 0;
}

static int load_tape(const struct perf_data *from, const struct aux_queue *queue, struct tape *ret)
{
	struct pt_packet packet;
	struct pt_cursor cursor;
	int r;

	*ret = (struct tape){ .queue = queue, .bytes = malloc(queue->size + 1) };
	if (!ret->bytes)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < queue->count; i++)
		memcpy(ret->bytes + queue->spans[i].position, queue->spans[i].data,
		       queue->spans[i].size);
	pt_cursor_init(&cursor, queue, &from->pt, pt_psb_after(queue, 0));
	while ((r = pt_cursor_next(&cursor, &packet)) != -PTVM_END) {
		if (r == -PTVM_BAD_PACKET)
			pt_cursor_seek(&cursor, pt_psb_after(queue, pt_cursor_position(&cursor)));
		else if (!r && packet.kind == PT_TSC &&
			 !vec_push(&ret->stamps, pt_cursor_position(&cursor) - TSC_BYTES))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int load(struct repeat *repeat)
{
	const struct perf_data *from = &repeat->from;
	uint64_t turn = (uint64_t)CTC_TURNS * (from->pt.ctc_n ? from->pt.ctc_n : 1);
	uint64_t length = last_time(from) - first_time(from);

	repeat->ticks = time_conv_tsc(&from->pt.conv, from->pt.conv.zero + length) + turn;
	repeat->ticks -= repeat->ticks % turn;
	repeat->ns = time_conv_ns(&from->pt.conv, repeat->ticks) - from->pt.conv.zero;
	repeat->tapes = calloc(from->queues.count + 1, sizeof(*repeat->tapes));
	if (!repeat->tapes)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < from->queues.count; i++)
		if (load_tape(from, &from->queues.items[i], &repeat->tapes[i]))
			return -PTVM_NO_MEMORY;
	return 0;
}

static int create(struct repeat *repeat, const char *path, struct ptvm_error *error)
{
	struct taken_events events;
	int r = taken_events_of(&repeat->from, &events, error);

	return r ? r : recording_out_create(&repeat->to, path, events.items, events.count, error);
}

static const struct tape *tape_of(const struct repeat *repeat, const struct perf_record *record)
{
	for (size_t i = 0; i < repeat->from.queues.count; i++) {
		const struct aux_queue *queue = repeat->tapes[i].queue;

		if (queue->cpu >= 0 ? queue->cpu == record->cpu : queue->tid == record->tid)
			return &repeat->tapes[i];
	}
	return NULL;
}

/* The time in the trailer, whose fields depend on the event: the last word that equals it. */
static void shift_time(uint8_t *bytes, size_t size, uint64_t time, uint64_t later)
{
	for (size_t at = size - size % 8; at > 8; at -= 8)
		if (load_le(bytes + at - 8, 8) == time) {
			time += later;
			memcpy(bytes + at - 8, &time, 8);
			return;
		}
}

static void shift_aux(uint8_t *bytes, const struct tape *tape, uint64_t copy)
{
	uint64_t offset = load_le(bytes + 8, 8) + copy * tape->queue->size;

	memcpy(bytes + 8, &offset, 8);
}

/* What was there before the trace is not there again. */
static bool is_repeated(const struct perf_record *record)
{
	return record->time && (record->type == PERF_AUX || record->type == PERF_SWITCH ||
				record->type == PERF_SWITCH_CPU_WIDE);
}

static int write_records(struct repeat *repeat, uint64_t copy, struct ptvm_error *error)
{
	uint8_t bytes[UINT16_MAX];
	int r = 0;

	for (size_t i = 0; i < repeat->from.records.count && !r; i++) {
		const struct perf_record *record = &repeat->from.records.items[i];
		const struct tape *tape = tape_of(repeat, record);
		const struct ring_bytes out = { .first = bytes, .first_size = record->size };

		if (copy && !is_repeated(record))
			continue;
		memcpy(bytes, record->data, record->size);
		if (record->time)
			shift_time(bytes, record->size, record->time, copy * repeat->ns);
		if (record->type == PERF_AUX && tape)
			shift_aux(bytes, tape, copy);
		r = recording_out_records(&repeat->to, &out, error);
	}
	return r;
}

static void shift_stamps(struct tape *tape, uint64_t ticks)
{
	for (size_t i = 0; i < tape->stamps.count; i++) {
		uint8_t *p = tape->bytes + tape->stamps.items[i];
		uint64_t tsc = load_le(p, TSC_BYTES) + ticks;

		memcpy(p, &tsc, TSC_BYTES);
	}
}

static int write_trace(struct repeat *repeat, struct tape *tape, uint64_t copy,
		       struct ptvm_error *error)
{
	const struct aux_queue *queue = tape->queue;
	int r = 0;

	for (size_t i = 0; i < queue->count && !r; i++) {
		const struct aux_span *span = &queue->spans[i];
		const struct recording_trace trace = {
			.offset = copy * queue->size + span->position,
			.reference = span->reference + copy * repeat->ticks,
			.queue = queue->index,
			.tid = queue->tid,
			.cpu = queue->cpu,
		};
		const struct ring_bytes bytes = { .first = tape->bytes + span->position,
						  .first_size = span->size };

		r = recording_out_trace(&repeat->to, &trace, &bytes, error);
	}
	shift_stamps(tape, repeat->ticks);
	return r;
}

static int write_copy(struct repeat *repeat, uint64_t copy, struct ptvm_error *error)
{
	int r = write_records(repeat, copy, error);

	for (size_t i = 0; i < repeat->from.queues.count && !r; i++)
		r = write_trace(repeat, &repeat->tapes[i], copy, error);
	return r ? r : recording_out_round(&repeat->to, error);
}

static int finish(struct repeat *repeat, uint64_t copies, struct ptvm_error *error)
{
	const struct perf_features *from = &repeat->from.features;
	uint64_t times[2] = { from->first_sample_ns, from->last_sample_ns };
	struct recording_feature features[MAX_FEATURES];
	size_t count = 0;

	if (times[1]) /* else the recording does not say */
		times[1] += (copies - 1) * repeat->ns;
	for (unsigned i = 1; i < MAX_FEATURES; i++) {
		struct bytes payload = from->payloads[i];

		if (i == PERF_FEATURE_SAMPLE_TIME && payload.size == sizeof(times))
			payload.data = (const uint8_t *)times;
		if (i != INDEX && payload.size)
			features[count++] =
				(struct recording_feature){ i, payload.data, payload.size };
	}
	return recording_out_finish(&repeat->to, features, count, error);
}

static int run(char **argv, struct repeat *repeat, struct ptvm_error *error)
{
	uint64_t copies = strtoull(argv[3], NULL, 10);
	int r = perf_data_open(argv[1], &repeat->from, error);

	if (!r && (!copies || repeat->from.pt.snapshot || !repeat->from.pt.conv.valid))
		r = ptvm_fail(error, PTVM_BAD_INPUT, "%s: cannot be repeated", argv[1]);
	if (!r)
		r = create(repeat, argv[2], error);
	if (!r && load(repeat))
		r = ptvm_fail(error, PTVM_NO_MEMORY, "out of memory");
	for (uint64_t copy = 0; copy < copies && !r; copy++)
		r = write_copy(repeat, copy, error);
	return r ? r : finish(repeat, copies, error);
}

int main(int argc, char **argv)
{
	struct repeat repeat = { 0 };
	struct ptvm_error error = { 0 };
	int r;

	if (argc != 4)
		return 2;
	r = run(argv, &repeat, &error);
	if (r)
		(void)fprintf(stderr, "repeat_recording: %s\n", error.message);
	for (size_t i = 0; repeat.tapes && i < repeat.from.queues.count; i++) {
		free(repeat.tapes[i].bytes);
		vec_free(&repeat.tapes[i].stamps);
	}
	free(repeat.tapes);
	recording_out_close(&repeat.to);
	perf_data_close(&repeat.from);
	return r ? 1 : 0;
}
