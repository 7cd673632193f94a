#include "decode/aux_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "decode/pt_stream.h"

/* The kernel maps the pages around one that is asked for, within so many bytes: with the first of
 * `part` some before it have come, too. */
enum { AROUND = 64 << 10 };

void aux_pages_release(const struct bytes *mapping, struct bytes part)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)mapping->data;
	uintptr_t from = (uintptr_t)part.data & ~(uintptr_t)(AROUND - 1);
	uintptr_t to = ((uintptr_t)part.data + part.size) & ~(page - 1);

	if (part.data < mapping->data || part.data >= mapping->data + mapping->size)
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
