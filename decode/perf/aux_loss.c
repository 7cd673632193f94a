#include "decode/perf/aux_loss.h"

#include <stdlib.h>

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_record.h"

/* A queue by what AUX records know of it: its CPU, or its thread. */
struct owner {
	int32_t key;
	uint32_t queue;
};

SORT_BY_TWO(compare_owners, struct owner, key, queue)

static struct owner *sorted_owners(const struct perf_data *data)
{
	size_t count = data->queues.count;
	struct owner *owners = calloc(count, sizeof(*owners));

	if (!owners)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct aux_queue *queue = &data->queues.items[i];

		owners[i].key = data->pt.per_cpu ? queue->cpu : queue->tid;
		owners[i].queue = (uint32_t)i;
	}
	qsort(owners, count, sizeof(*owners), compare_owners);
	return owners;
}

static struct aux_queue *find_queue(struct perf_data *data, const struct owner *owners, int32_t key)
{
	size_t low = search_sorted(data->queues.count, i, owners[i].key < key);

	if (low == data->queues.count || owners[low].key != key)
		return NULL;
	return &data->queues.items[owners[low].queue];
}

/* The last span that begins before the kernel's count of bytes `offset`; NULL if none. */
static struct aux_span *span_before(const struct aux_queue *queue, uint64_t offset)
{
	size_t low = search_sorted(queue->count, i, queue->spans[i].trace_offset < offset);

	return low ? &queue->spans[low - 1] : NULL;
}

/* Where the kernel's count of bytes `offset` lies in the stream. */
static uint64_t position_of(const struct aux_queue *queue, uint64_t offset)
{
	const struct aux_span *span = span_before(queue, offset);
	uint64_t into;

	if (!span)
		return 0;
	into = offset - span->trace_offset;
	return span->position + (into < span->size ? into : span->size);
}

static bool is_pt_aux(const struct perf_data *data, const struct perf_record *record,
		      struct perf_aux *ret)
{
	const struct perf_id *id = perf_event_find_id(data, record->id);

	if (record->type != PERF_AUX || perf_aux_read(record, ret) < 0)
		return false;
	return !id || data->events.items[id->event].is_pt;
}

/* Whether a span ends where the kernel's count of bytes was `end`, but for the zeroes that perf
 * pads buffers with, which only the next buffer tells from trace. */
static bool ends_at(const struct aux_span *span, uint64_t end)
{
	enum { PADDING = 8 };
	uint64_t size = end - span->trace_offset;

	if (end < span->trace_offset || span->size < size || span->size - size >= PADDING)
		return false;
	while (size < span->size && !span->data[size])
		size++;
	return size == span->size;
}

/* The kernel wrote the record right after tracing had stopped: that dates the end of a span. In a
 * snapshot the record's offset is where the buffer ended, and is repeated in the AUXTRACE. Samples
 * are dated already. */
static void note_stop(const struct perf_data *data, const struct aux_queue *queue,
		      const struct perf_aux *aux, uint64_t time)
{
	uint64_t end = data->pt.snapshot ? aux->offset + 1 : aux->offset + aux->size;
	struct aux_span *span = span_before(queue, end);

	if (span && !span->stop_ns &&
	    (data->pt.snapshot ? span->trace_offset == aux->offset : ends_at(span, end)))
		span->stop_ns = time;
}

static int collect(struct perf_data *data, const struct owner *owners)
{
	const uint64_t lossy = PERF_AUX_TRUNCATED | PERF_AUX_PARTIAL | PERF_AUX_COLLISION;

	struct record_trail trail = perf_data_trail(data);

	for (size_t i = 0; i < data->records.count; i++) {
		const struct perf_record *record = &data->records.items[i];
		int32_t key = data->pt.per_cpu ? record->cpu : record->tid;
		struct aux_queue *queue;
		struct perf_aux aux;

		perf_data_step(&trail, record->data, record->size);
		if (!is_pt_aux(data, record, &aux))
			continue;
		queue = find_queue(data, owners, key);
		if (!queue)
			continue;
		note_stop(data, queue, &aux, record->time);
		if (!(aux.flags & lossy))
			continue;

		struct aux_loss loss = {
			.time = record->time,
			.cpu = record->cpu,
			.tid = record->tid,
			.position = data->pt.snapshot ? queue->size
						      : position_of(queue, aux.offset + aux.size),
			.flags = aux.flags,
		};

		if (!vec_grow((void **)&queue->losses, &queue->loss_room, queue->loss_count,
			      sizeof(loss)))
			return -PTVM_NO_MEMORY;
		queue->losses[queue->loss_count++] = loss;
	}
	return 0;
}

SORT_BY_TWO(compare_losses, struct aux_loss, position, time)

/* Copy `span` to `ret`, in pieces between the losses in it; returns how many. The record of a loss
 * dates the end of what is before it, as note_stop() says. */
static size_t split_span(const struct aux_queue *queue, struct aux_span span, size_t *loss,
			 struct aux_span *ret)
{
	size_t count = 0;

	for (; *loss < queue->loss_count; (*loss)++) {
		uint64_t at = queue->losses[*loss].position - span.position;
		struct aux_span front = span;

		if (queue->losses[*loss].position >= span.position + span.size)
			break;
		if (at) {
			front.size = at;
			front.stop_ns = queue->losses[*loss].time;
			ret[count++] = front;
			span.data += at;
			span.size -= at;
			span.position += at;
			span.file_offset += at;
			span.trace_offset += at;
		}
		span.lost_before |= span.position > 0;
	}
	ret[count++] = span;
	return count;
}

static int split(struct aux_queue *queue)
{
	struct aux_span *spans = calloc(queue->count + queue->loss_count, sizeof(*spans));
	size_t count = 0, loss = 0;

	if (!spans)
		return -PTVM_NO_MEMORY;
	qsort(queue->losses, queue->loss_count, sizeof(*queue->losses), compare_losses);
	for (size_t i = 0; i < queue->count; i++)
		count += split_span(queue, queue->spans[i], &loss, spans + count);
	free(queue->spans);
	queue->spans = spans;
	queue->room = queue->count + queue->loss_count;
	queue->count = count;
	return 0;
}

int aux_loss_apply(struct perf_data *data)
{
	struct owner *owners;
	int r;

	if (!data->queues.count)
		return 0;
	owners = sorted_owners(data);
	if (!owners)
		return -PTVM_NO_MEMORY;
	r = collect(data, owners);
	for (size_t i = 0; i < data->queues.count && !r; i++)
		if (data->queues.items[i].loss_count)
			r = split(&data->queues.items[i]);
	free(owners);
	return r;
}
