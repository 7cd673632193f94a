#include "decode/pt/pt_stream.h"

#include <string.h>

#include "decode/base/search.h"
#include "decode/pt/pt_packet.h"

const struct aux_span *pt_span_at(const struct aux_queue *queue, uint64_t position)
{
	size_t low = search_sorted(queue->count, i,
				   queue->spans[i].position + queue->spans[i].size <= position);

	if (low == queue->count)
		return low ? &queue->spans[low - 1] : NULL;
	return &queue->spans[low];
}

uint64_t pt_file_offset(const struct aux_queue *queue, uint64_t position)
{
	const struct aux_span *span = pt_span_at(queue, position);

	return span ? span->file_offset + (position - span->position) : 0;
}

/* The last bytes of a span together with the first of what follows it. */
static void stitch(const struct aux_queue *queue, const struct aux_span *span, uint64_t offset,
		   struct pt_window *ret)
{
	const struct aux_span *end = queue->spans + queue->count;
	size_t used = (size_t)(span->size - offset);

	memset(ret->stitch, 0, sizeof(ret->stitch));
	memcpy(ret->stitch, span->data + offset, used);
	ret->data = ret->stitch;
	ret->limit = ret->stitch + used;
	for (span++; span < end && !span->lost_before && used < 2 * PT_WINDOW_SLACK; span++) {
		size_t take = 2 * PT_WINDOW_SLACK - used;

		if (take > span->size)
			take = (size_t)span->size;
		memcpy(ret->stitch + used, span->data, take);
		used += take;
		if (take < span->size)
			break;
	}
	ret->end = ret->stitch + used;
	ret->lost_after = span < end && span->lost_before;
}

void pt_window_at(const struct aux_queue *queue, uint64_t position, struct pt_window *ret)
{
	const struct aux_span *span = pt_span_at(queue, position);
	uint64_t offset;

	ret->position = position;
	ret->last = ret->lost_after = false;
	if (!span || position >= queue->size) {
		ret->data = ret->limit = ret->end = ret->stitch;
		ret->last = true;
		return;
	}
	offset = position - span->position;
	if (span->size - offset <= PT_WINDOW_SLACK) {
		stitch(queue, span, offset, ret);
		return;
	}
	ret->data = span->data + offset;
	ret->end = span->data + span->size;
	ret->limit = ret->end - PT_WINDOW_SLACK;
}

/* Move to the first PSB of the window at a position, or, returning false, to the next window. A PSB
 * may begin in the slack, or in bytes of a stitch that belong to the next span. */
static bool find_in_window(const struct aux_queue *queue, uint64_t *position)
{
	struct pt_window window;
	const uint8_t *psb;

	pt_window_at(queue, *position, &window);
	psb = pt_psb_find(window.data, window.end);
	*position += (uint64_t)((psb ? psb : window.limit) - window.data);
	return psb;
}

uint64_t pt_psb_after(const struct aux_queue *queue, uint64_t position)
{
	while (position < queue->size)
		if (find_in_window(queue, &position))
			return position;
	return queue->size;
}

uint64_t pt_psb_resync(const struct aux_queue *queue, uint64_t position, bool *ret_lost)
{
	uint64_t inside = PT_PSB_SIZE - 1, at = position > inside ? position - inside : 0;

	*ret_lost = false;
	while (at < queue->size) {
		if (at > position && pt_span_at(queue, at)->position == at)
			*ret_lost = pt_span_at(queue, at)->lost_before;
		if (*ret_lost || find_in_window(queue, &at))
			return at;
	}
	return queue->size;
}
