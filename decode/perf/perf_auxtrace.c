/* A buffer that perf copied need not begin with a packet: in full-trace mode all buffers of a queue
 * are one stream of bytes. Snapshots and samples stand alone, but a snapshot taken soon after
 * another one begins with bytes that the former ended with: these are found by comparing, from the
 * first PSB on, and cut off so that the stream goes on without a gap. perf pads each buffer with
 * zeroes to 8 bytes; where the next buffer tells the true end they are left out. */
#include "decode/perf/perf_auxtrace.h"

#include <stdlib.h>

#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/perf/aux_loss.h"
#include "decode/perf/perf_event.h"
#include "decode/pt/aux_pages.h"
#include "decode/pt/pt_packet.h"

/* Each queue takes some KB of memory: no more queues than Linux can have CPUs (NR_CPUS_RANGE_END,
 * arch/x86/Kconfig). */
enum { QUEUES_MAX = 8192, PADDING = 8 };

static int add(struct perf_auxtrace *auxtrace, struct aux_piece piece)
{
	if (auxtrace->pieces.count >= UINT32_MAX)
		return -PTVM_BAD_INPUT;
	piece.order = (uint32_t)auxtrace->pieces.count;
	return vec_push(&auxtrace->pieces, piece) ? 0 : -PTVM_NO_MEMORY;
}

int perf_auxtrace_add(struct perf_auxtrace *auxtrace, const struct perf_item *item)
{
	if (!item->payload.size)
		return 0;
	return add(auxtrace, (struct aux_piece){
				     .span = { .data = item->payload.data,
					       .size = item->payload.size,
					       .file_offset = item->payload_offset,
					       .trace_offset = load_le(item->data + 16, 8),
					       .reference = load_le(item->data + 24, 8) },
				     .index = (uint32_t)load_le(item->data + 32, 4),
				     .tid = (int32_t)(uint32_t)load_le(item->data + 36, 4),
				     .cpu = (int32_t)(uint32_t)load_le(item->data + 40, 4),
			     });
}

int perf_auxtrace_add_sample(struct perf_auxtrace *auxtrace, const struct perf_data *data,
			     const struct perf_record *record, struct bytes aux)
{
	const struct perf_id *id = perf_event_find_id(data, record->id);
	bool per_cpu = data->pt.per_cpu;
	int32_t index = id && id->index >= 0 ? id->index : per_cpu ? record->cpu : record->tid;

	if (!aux.size)
		return 0;
	return add(auxtrace, (struct aux_piece){
				     .span = { .data = aux.data,
					       .size = aux.size,
					       .file_offset = record->file_offset +
							      (uint64_t)(aux.data - record->data),
					       .stop_ns = record->time,
					       .reference = data->pt.conv.valid
								    ? time_conv_tsc(&data->pt.conv,
										    record->time)
								    : 0 },
				     .index = (uint32_t)index,
				     .cpu = per_cpu ? record->cpu : -1,
				     .tid = per_cpu ? -1 : record->tid,
			     });
}

static uint64_t equal_bytes(const uint8_t *a, const uint8_t *b, uint64_t size)
{
	uint64_t i = 0;

	while (i + 8 <= size && load_le(a + i, 8) == load_le(b + i, 8))
		i += 8;
	while (i < size && a[i] == b[i])
		i++;
	return i;
}

/* Zero bytes at the end that may be padding. */
static uint64_t padding(struct bytes bytes)
{
	uint64_t count = 0;

	while (count < PADDING - 1 && count < bytes.size && !bytes.data[bytes.size - 1 - count])
		count++;
	return count;
}

/*
 * How many bytes at the end of `before` are repeated at the start of `next`; `ret_surplus` are the
 * bytes at the very end of `before` that turn out to be padding. The first PSB of `next` is tried
 * at each PSB of `before`. Real traces differ soon after a PSB; made-up ones need not, so that all
 * tries together may compare only a few times as many bytes as there are.
 */
static uint64_t find_overlap(struct bytes before, struct bytes next, uint64_t *ret_surplus)
{
	const uint8_t *end = before.data + before.size;
	const uint8_t *anchor = pt_psb_find(next.data, next.data + next.size);
	uint64_t pad = padding(before), lead, budget = 4 * ((uint64_t)before.size + next.size);

	*ret_surplus = 0;
	if (!anchor)
		return 0;
	lead = (uint64_t)(anchor - next.data);
	if (lead > before.size)
		return 0;
	for (const uint8_t *p = pt_psb_find(before.data + lead, end); p;
	     p = pt_psb_find(p + 2, end)) {
		const uint8_t *start = p - lead;
		uint64_t size = (uint64_t)(end - start), equal;

		equal = equal_bytes(start, next.data, size < next.size ? size : next.size);
		if (equal >= size - pad) {
			*ret_surplus = size - equal;
			return equal;
		}
		if (equal > budget)
			break;
		budget -= equal;
	}
	return 0;
}

/* Leave out the zeroes that perf wrote after a buffer, where the next one begins before their end.
 */
static void trim_padding(struct aux_queue *queue, struct aux_span *last, uint64_t next_offset)
{
	uint64_t end = last->trace_offset + last->size;
	struct bytes bytes = { last->data, last->size };

	if (next_offset >= end || end - next_offset > padding(bytes) ||
	    end - next_offset >= last->size)
		return;
	last->size = next_offset - last->trace_offset;
	queue->size = last->position + last->size;
}

/* Add a buffer that may repeat the end of the `before`; returns the bytes to step over. */
static uint64_t join(struct aux_queue *queue, struct aux_span *last, struct bytes before,
		     struct bytes next)
{
	uint64_t surplus, overlap = find_overlap(before, next, &surplus);

	if (overlap && surplus < last->size) {
		last->size -= surplus;
		queue->size -= surplus;
	}
	return overlap;
}

static void append(struct aux_queue *queue, const struct aux_piece *piece, struct bytes before,
		   bool stands_alone)
{
	struct aux_span *last = queue->count ? &queue->spans[queue->count - 1] : NULL;
	struct aux_span span = piece->span;
	uint64_t overlap = 0;

	if (last && stands_alone) {
		overlap = join(queue, last, before, (struct bytes){ span.data, span.size });
		span.lost_before = !overlap;
		if (overlap && overlap <= queue->size)
			queue->repeats[queue->repeat_count++] =
				(struct aux_repeat){ queue->size - overlap, overlap,
						     span.file_offset };
	} else if (last) {
		trim_padding(queue, last, span.trace_offset);
		span.lost_before = span.trace_offset > last->trace_offset + last->size;
	}
	if (overlap == span.size) {
		last->reference = span.reference;
		return;
	}
	span.data += overlap;
	span.size -= overlap;
	span.file_offset += overlap;
	span.trace_offset += overlap;
	span.position = queue->size;
	queue->spans[queue->count++] = span;
	queue->size += span.size;
}

static int add_queue(struct perf_data *data, const struct aux_piece *pieces, size_t count)
{
	struct aux_queue queue = {
		.index = pieces->index,
		.cpu = pieces->cpu,
		.tid = pieces->cpu >= 0 ? -1 : pieces->tid,
		.pid = -1,
		.spans = calloc(count, sizeof(*queue.spans)),
		.room = count,
		.repeats = calloc(count, sizeof(*queue.repeats)),
	};
	struct page_trail trail = { .mapping = &data->mapping };
	struct bytes before = { NULL, 0 };

	if (!queue.spans || !queue.repeats) {
		free(queue.spans);
		free(queue.repeats);
		return -PTVM_NO_MEMORY;
	}
	for (size_t i = 0; i < count; i++) {
		page_trail_step(&trail, pieces[i].span.data);
		append(&queue, &pieces[i], before, data->pt.snapshot);
		before = (struct bytes){ pieces[i].span.data, pieces[i].span.size };
	}
	if (vec_push(&data->queues, queue))
		return 0;
	free(queue.spans);
	free(queue.repeats);
	return -PTVM_NO_MEMORY;
}

SORT_BY_TWO(compare_pieces, struct aux_piece, index, order)

int perf_auxtrace_finish(struct perf_auxtrace *auxtrace, struct perf_data *data)
{
	const struct aux_piece *pieces = auxtrace->pieces.items;
	size_t count = auxtrace->pieces.count;

	if (count)
		qsort(auxtrace->pieces.items, count, sizeof(*pieces), compare_pieces);
	for (size_t first = 0, i = 1; i <= count; i++) {
		if (i < count && pieces[i].index == pieces[first].index)
			continue;
		if (data->queues.count == QUEUES_MAX)
			data->left_out_queues++;
		else if (add_queue(data, pieces + first, i - first) < 0)
			return -PTVM_NO_MEMORY;
		first = i;
	}
	return aux_loss_apply(data);
}

void perf_auxtrace_deinit(struct perf_auxtrace *auxtrace)
{
	vec_free(&auxtrace->pieces);
}
