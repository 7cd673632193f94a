#include "host/record/trace_loss.h"

#include <string.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_record.h"

enum {
	HEADER_SIZE = 8,
	TRAILER_SIZE = 32, /* pid, tid, time, CPU and identifier: perf_open.c asks for them */
	TRAILER_TID = 4,
	TRAILER_TIME = 8,
	MAX_READ = 64, /* bytes of a record that are looked at */
};

/* What all records but samples tell. */
struct record {
	uint32_t type;
	uint16_t size;
	uint8_t data[MAX_READ]; /* from the header on */
	pid_t tid;
	uint64_t time;
};

static void copy_out(const struct ring_bytes *bytes, uint64_t at, uint8_t *to, uint64_t size)
{
	uint64_t first = at < bytes->first_size ? bytes->first_size - at : 0;

	first = first < size ? first : size;
	if (first)
		memcpy(to, bytes->first + at, first);
	if (first < size)
		memcpy(to + first, bytes->second + (at + first - bytes->first_size), size - first);
}

/* False at the end, or where no record can be. */
static bool read_record(const struct ring_bytes *bytes, uint64_t at, struct record *ret)
{
	const uint64_t left = bytes->first_size + bytes->second_size - at;
	uint8_t trailer[TRAILER_SIZE];

	memset(ret, 0, sizeof(*ret));
	if (left < HEADER_SIZE)
		return false;
	copy_out(bytes, at, ret->data, HEADER_SIZE);
	ret->type = (uint32_t)load_le(ret->data, 4);
	ret->size = (uint16_t)load_le(ret->data + 6, 2);
	if (ret->size < HEADER_SIZE || ret->size > left)
		return false;
	copy_out(bytes, at, ret->data, ret->size < MAX_READ ? ret->size : MAX_READ);
	if (ret->type == PERF_SAMPLE || ret->size < HEADER_SIZE + TRAILER_SIZE)
		return true;
	copy_out(bytes, at + ret->size - TRAILER_SIZE, trailer, TRAILER_SIZE);
	ret->tid = (pid_t)load_le(trailer + TRAILER_TID, 4);
	ret->time = load_le(trailer + TRAILER_TIME, 8);
	return true;
}

static struct thread_loss *thread_of(struct trace_loss *loss, pid_t tid)
{
	for (size_t i = 0; i < loss->threads.count; i++)
		if (loss->threads.items[i].tid == tid)
			return &loss->threads.items[i];
	if (!vec_push(&loss->threads, (struct thread_loss){ .tid = tid }))
		return NULL;
	return &loss->threads.items[loss->threads.count - 1];
}

static void note_time(struct thread_loss *thread, uint64_t time)
{
	if (!time)
		return;
	if (!thread->first || time < thread->first)
		thread->first = time;
	if (time > thread->last)
		thread->last = time;
}

static int read_lost(struct trace_loss *loss, const struct record *record, uint64_t count)
{
	struct thread_loss *thread = thread_of(loss, record->tid);

	if (!thread)
		return -PTVM_NO_MEMORY;
	thread->records += count;
	note_time(thread, record->time);
	return 0;
}

/* Bytes that no record hands out were lost; snapshots are no stream. */
static int read_aux(struct trace_loss *loss, const struct record *record)
{
	const uint64_t offset = load_le(record->data + 8, 8), size = load_le(record->data + 16, 8);
	const uint64_t flags = load_le(record->data + 24, 8);
	const uint64_t skipped = offset > loss->end ? offset - loss->end : 0;
	struct thread_loss *thread;

	if (flags & PERF_AUX_OVERWRITE)
		return 0;
	loss->end = offset + size;
	loss->is_untold |= skipped != 0;
	if (!skipped && !(flags & (PERF_AUX_TRUNCATED | PERF_AUX_PARTIAL | PERF_AUX_COLLISION)))
		return 0;
	thread = thread_of(loss, record->tid);
	if (!thread)
		return -PTVM_NO_MEMORY;
	note_time(thread, record->time);
	thread->bytes += skipped;
	thread->stops += (flags & PERF_AUX_TRUNCATED) != 0;
	thread->partials += (flags & (PERF_AUX_PARTIAL | PERF_AUX_COLLISION)) != 0;
	if (flags & PERF_AUX_TRUNCATED) {
		loss->stopped_at = record->time;
		loss->stopped_tid = record->tid;
	}
	return 0;
}

static int read_one(struct trace_loss *loss, const struct record *record)
{
	if (record->time && (!loss->oldest || record->time < loss->oldest))
		loss->oldest = record->time;
	if (record->time > loss->newest)
		loss->newest = record->time;
	switch (record->type) {
	case PERF_LOST:
		loss->told += load_le(record->data + 16, 8);
		return read_lost(loss, record, load_le(record->data + 16, 8));
	case PERF_LOST_SAMPLES: return read_lost(loss, record, load_le(record->data + 8, 8));
	case PERF_SAMPLE: loss->samples++; return 0;
	case PERF_AUX: return read_aux(loss, record);
	default: return 0;
	}
}

int trace_loss_read(struct trace_loss *loss, const struct ring_bytes *bytes)
{
	struct record record;
	uint64_t at = 0;
	int r = 0;

	for (; read_record(bytes, at, &record); at += record.size)
		if (read_one(loss, &record))
			r = -PTVM_NO_MEMORY;
	return r;
}

int trace_loss_pending(struct trace_loss *loss, uint64_t counted, pid_t tid)
{
	struct thread_loss *thread;

	if (counted <= loss->told)
		return 0;
	thread = thread_of(loss, tid);
	if (!thread)
		return -PTVM_NO_MEMORY;
	thread->records += counted - loss->told;
	loss->told = counted;
	return 0;
}

void trace_loss_resumed(struct trace_loss *loss, uint64_t time)
{
	struct thread_loss *thread;

	loss->is_untold = false;
	if (!loss->stopped_at)
		return;
	thread = thread_of(loss, loss->stopped_tid);
	if (thread && time > loss->stopped_at)
		thread->ns += time - loss->stopped_at;
	loss->stopped_at = 0;
}

void thread_loss_add(struct thread_loss *to, const struct thread_loss *from)
{
	to->stops += from->stops;
	to->partials += from->partials;
	to->bytes += from->bytes;
	to->records += from->records;
	to->ns += from->ns;
	note_time(to, from->first);
	note_time(to, from->last);
}

int trace_loss_add(struct trace_loss *to, const struct trace_loss *from)
{
	for (size_t i = 0; i < from->threads.count; i++) {
		const struct thread_loss *part = &from->threads.items[i];
		struct thread_loss *whole = thread_of(to, part->tid);

		if (!whole)
			return -PTVM_NO_MEMORY;
		thread_loss_add(whole, part);
	}
	to->samples += from->samples;
	if (from->oldest && (!to->oldest || from->oldest < to->oldest))
		to->oldest = from->oldest;
	if (from->newest > to->newest)
		to->newest = from->newest;
	return 0;
}

void trace_loss_free(struct trace_loss *loss)
{
	vec_free(&loss->threads);
	memset(loss, 0, sizeof(*loss));
}
