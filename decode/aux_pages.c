#include "decode/aux_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "decode/pt_stream.h"

/* The kernel also maps the pages around one that is read, within so many bytes: with the first page
 * of `part` came some before it. */
enum { AROUND = 64 << 10 };

void aux_pages_release(const struct bytes *mapping, struct bytes part)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)mapping->data;
	uintptr_t from = (uintptr_t)part.data & ~(uintptr_t)(AROUND - 1);
	uintptr_t to = ((uintptr_t)part.data + part.size) & ~(page - 1);

	if (!mapping->size || part.data < mapping->data ||
	    part.data >= mapping->data + mapping->size)
		return;
	from = from > first ? from : first;
	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void aux_pages_release_trace(const struct bytes *mapping, const struct aux_queue *queue,
			     uint64_t from, uint64_t to)
{
	const struct aux_span *span = pt_span_at(queue, from);
	const struct aux_span *end = queue->spans + queue->count;

	for (; mapping->size && span && span < end && span->position < to; span++) {
		uint64_t skip = from > span->position ? from - span->position : 0;
		uint64_t size = to - span->position;

		if (size > span->size)
			size = span->size;
		if (skip < size)
			aux_pages_release(mapping,
					  (struct bytes){ span->data + skip, size - skip });
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

void page_trail_step(struct page_trail *trail, const uint8_t *p)
{
	enum { AT_ONCE = 4 << 20 }; /* bytes: giving pages back costs a system call */
	const struct bytes *mapping = trail->mapping;

	if (!mapping->size)
		return;
	if (!trail->from)
		trail->from = mapping->data;
	if (p < trail->from || p >= mapping->data + mapping->size || p - trail->from < AT_ONCE)
		return;
	aux_pages_release(mapping, (struct bytes){ trail->from, (size_t)(p - trail->from) });
	trail->from = p;
}
