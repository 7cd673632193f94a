#include "decode/pt/aux_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "decode/pt/pt_stream.h"

/* The kernel also maps the pages around one that is read, within so many bytes: with the first page
 * of `part` came some before it. */
enum { AROUND = 64 << 10 };

static bool is_in(const struct bytes *mapping, const uint8_t *p)
{
	return p >= mapping->data && p < mapping->data + mapping->size;
}

void aux_pages_release(const struct bytes *mapping, struct bytes part)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)mapping->data;
	uintptr_t from = (uintptr_t)part.data & ~(uintptr_t)(AROUND - 1);
	uintptr_t to = ((uintptr_t)part.data + part.size) & ~(page - 1);

	if (!is_in(mapping, part.data))
		return;
	from = from > first ? from : first;
	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* Where the pages end that came with those before `end`, which nobody goes on from. */
static const uint8_t *end_around(const struct bytes *mapping, const uint8_t *end)
{
	size_t more = (AROUND - (uintptr_t)end % AROUND) % AROUND;
	size_t left = (size_t)(mapping->data + mapping->size - end);

	return end + (more < left ? more : left);
}

void aux_pages_release_trace(const struct bytes *mapping, const struct aux_queue *queue,
			     uint64_t from, uint64_t to)
{
	const struct aux_span *span = pt_span_at(queue, from);
	const struct aux_span *end = queue->spans + queue->count;

	for (; mapping->size && span && span < end && span->position < to; span++) {
		uint64_t skip = from > span->position ? from - span->position : 0;
		const uint8_t *start = span->data + skip, *last = span->data + span->size;

		if (skip >= span->size || !is_in(mapping, start))
			continue;
		if (to - span->position < span->size)
			last = span->data + (to - span->position);
		else
			last = end_around(mapping, last);
		aux_pages_release(mapping, (struct bytes){ start, (size_t)(last - start) });
	}
}

void aux_pages_pass(const struct bytes *mapping, const struct aux_queue *queue, uint64_t *held,
		    uint64_t to)
{
	enum { AT_ONCE = 1 << 20 }; /* bytes: giving pages back costs a system call */

	if (to < *held || to - *held < AT_ONCE)
		return;
	aux_pages_release_trace(mapping, queue, *held, to);
	*held = to;
}

void aux_pages_expect(const struct bytes *mapping, enum page_habit habit)
{
	if (mapping->size)
		(void)madvise((void *)mapping->data, mapping->size,
			      habit == PAGES_SCATTERED ? MADV_RANDOM : MADV_NORMAL);
}

void aux_pages_prefetch(const struct bytes *mapping, uint64_t offset, uint64_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct bytes part = bytes_slice(*mapping, offset, size);
	uintptr_t from = (uintptr_t)part.data & ~(page - 1);

	if (part.size)
		(void)madvise((void *)from, (uintptr_t)part.data + part.size - from, MADV_WILLNEED);
}

void aux_pages_prefetch_trace(const struct bytes *mapping, const struct aux_queue *queue,
			      uint64_t from, uint64_t to)
{
	const struct aux_span *span = pt_span_at(queue, from);
	const struct aux_span *end = queue->spans + queue->count;

	for (; mapping->size && span && span < end && span->position < to; span++) {
		uint64_t skip = from > span->position ? from - span->position : 0;
		uint64_t size = to - span->position < span->size ? to - span->position : span->size;

		if (skip < size && is_in(mapping, span->data))
			aux_pages_prefetch(mapping, (uint64_t)(span->data - mapping->data) + skip,
					   size - skip);
	}
}

/* Where the trail is in the mapping, and NULL where it is elsewhere or goes back. */
static const uint8_t *place_on(struct page_trail *trail, const uint8_t *p)
{
	const struct bytes *mapping = trail->mapping;

	if (!mapping->size || !is_in(mapping, p))
		return NULL;
	if (!trail->from)
		trail->from = trail->at = mapping->data;
	return p < trail->at ? NULL : p;
}

/* Give back what is behind the trail, if so much of it may be in memory that it is worth a system
 * call. */
static void step_to(struct page_trail *trail, const uint8_t *p, size_t read)
{
	enum { AT_ONCE = 4 << 20 };

	trail->at = p;
	trail->held += read;
	if (trail->held < AT_ONCE)
		return;
	aux_pages_release(trail->mapping, (struct bytes){ trail->from, (size_t)(p - trail->from) });
	trail->from = p;
	trail->held = 0;
}

void page_trail_step(struct page_trail *trail, const uint8_t *p)
{
	if (place_on(trail, p))
		step_to(trail, p, (size_t)(p - trail->at));
}

void page_trail_leap(struct page_trail *trail, const uint8_t *p)
{
	enum { STEP = 4096 }; /* readers of small records come often */
	size_t distance;

	if ((uintptr_t)p - (uintptr_t)trail->at < STEP || !place_on(trail, p))
		return;
	distance = (size_t)(p - trail->at);
	step_to(trail, p, distance < AROUND ? distance : AROUND);
}
