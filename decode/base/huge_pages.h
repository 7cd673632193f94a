/* Memory in huge pages: for what is large, or accessed at random. A page fault costs more than the
 * work on a small page, and random accesses to small pages miss the TLB. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 }; /* bytes */

/** `size` rounded up to whole huge pages; 0 where that is too much. */
static inline size_t huge_pages_size(size_t size)
{
	return (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

/** Memory of huge_pages_size() bytes, in huge pages where the kernel has them to give; not zeroed,
 * for realloc() and free(). NULL when memory is out. */
static inline void *huge_pages_alloc(size_t size)
{
	size_t whole = huge_pages_size(size);
	void *pages = whole ? aligned_alloc(HUGE_PAGE, whole) : NULL;

	if (pages)
		(void)madvise(pages, whole, MADV_HUGEPAGE);
	return pages;
}

/** As huge_pages_alloc(), but zeroed: by the kernel, each page when it is first used. For
 * huge_pages_unmap(). NULL when memory is out. */
static inline void *huge_pages_map(size_t size)
{
	size_t whole = huge_pages_size(size), more = whole + HUGE_PAGE, before;
	uint8_t *pages;

	if (!whole || more < whole)
		return NULL;
	pages = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
	/* what lies beyond the first and last border of huge pages is given back */
	before = -(uintptr_t)pages & (HUGE_PAGE - 1);
	if (before)
		(void)munmap(pages, before);
	(void)munmap(pages + before + whole, HUGE_PAGE - before);
	(void)madvise(pages + before, whole, MADV_HUGEPAGE);
	return pages + before;
}

/** Give back what huge_pages_map() gave for `size`; accepts NULL. */
static inline void huge_pages_unmap(void *pages, size_t size)
{
	if (pages)
		(void)munmap(pages, huge_pages_size(size));
}
