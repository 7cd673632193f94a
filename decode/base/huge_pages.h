/* Memory in huge pages: for what is large, or accessed at random. A page fault costs more than the
 * work on a small page, and random accesses to small pages miss the TLB. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 }; /* bytes */

/** `size` rounded up to whole huge pages; 0 where that is too much. */
static inline size_t huge_pages_size(size_t size)
{
	return (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

/** Memory of huge_pages_size() bytes, in huge pages where the kernel has them to give; not zeroed,
 * for free(). NULL when memory is out. */
static inline void *huge_pages_alloc(size_t size)
{
	size_t whole = huge_pages_size(size);
	void *pages = whole ? aligned_alloc(HUGE_PAGE, whole) : NULL;

	if (pages)
		(void)madvise(pages, whole, MADV_HUGEPAGE);
	return pages;
}
