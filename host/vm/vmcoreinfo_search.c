#include "host/vm/vmcoreinfo_search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "host/vm/ram_mappings.h"

/* Of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
static const uint64_t is_present = UINT64_C(1) << 63, is_swapped = UINT64_C(1) << 62;

enum { PAGE = VMCOREINFO_BYTES, PAGES = 256 /* read at once */ };

struct search {
	int memory, pagemap; /* -1: there is none, and all pages count as touched */
	bool wants_touched;  /* or, where it does not, the others */
	uint8_t *data;       /* PAGES of them */
	struct vmcoreinfo_list *found;
};

static bool is_known(const struct vmcoreinfo_list *list, const struct vmcoreinfo *info)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].root.cr3 == info->root.cr3 &&
		    list->items[i].root_address == info->root_address)
			return true;
	return false;
}

static void look_at(const uint8_t *page, struct vmcoreinfo_list *found)
{
	char text[VMCOREINFO_BYTES + 1];
	struct vmcoreinfo info;

	if (!vmcoreinfo_begins(page) || found->count == VMCOREINFO_FOUND)
		return;
	memcpy(text, page, VMCOREINFO_BYTES);
	text[VMCOREINFO_BYTES] = '\0';
	if (vmcoreinfo_read(text, &info) && !is_known(found, &info))
		found->items[found->count++] = info;
}

/* Pages which cannot be read, as those that a device has, are passed over. */
static int look_at_run(const struct search *search, uint64_t address, size_t pages,
		       struct ptvm_error *error)
{
	ssize_t n;

	do {
		n = pread(search->memory, search->data, pages * PAGE, (off_t)address);
	} while (n < 0 && errno == EINTR);
	if (!n)
		return ptvm_fail(error, PTVM_SYSTEM, "the process that runs the guest has ended");
	for (ssize_t at = 0; at + PAGE <= n; at += PAGE)
		look_at(search->data + at, search->found);
	return 0;
}

static bool is_wanted(const struct search *search, uint64_t entry)
{
	return search->wants_touched == !!(entry & (is_present | is_swapped));
}

static int look_at_pages(const struct search *search, uint64_t address, size_t count,
			 struct ptvm_error *error)
{
	uint64_t entries[PAGES];
	const size_t size = count * sizeof(*entries);
	size_t first = 0;
	int r = 0;

	memset(entries, 0xff, sizeof(entries));
	if (search->pagemap >= 0 &&
	    pread(search->pagemap, entries, size, (off_t)(address / PAGE * sizeof(*entries))) !=
		    (ssize_t)size)
		memset(entries, 0xff, sizeof(entries));
	for (size_t i = 0; i <= count && !r; i++) {
		if (i < count && is_wanted(search, entries[i]))
			continue;
		if (i > first)
			r = look_at_run(search, address + first * PAGE, i - first, error);
		first = i + 1;
	}
	return r;
}

static int search_all(const struct search *search, const struct ram_mappings *mappings,
		      struct ptvm_error *error)
{
	size_t pages;
	int r = 0;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct ram_mapping *mapping = &mappings->items[i];

		if (!search->wants_touched && !mapping->is_copy_of_file)
			continue;
		for (uint64_t at = mapping->from; at < mapping->to && !r; at += pages * PAGE) {
			pages = (mapping->to - at) / PAGE < PAGES ? (mapping->to - at) / PAGE
								  : PAGES;
			r = look_at_pages(search, at, pages, error);
		}
	}
	return r;
}

int vmcoreinfo_search(const struct roots *roots, pid_t pid, int memory,
		      const struct ram_mappings *mappings, struct vmcoreinfo_list *ret,
		      struct ptvm_error *error)
{
	_cleanup_free_ uint8_t *data = malloc(PAGES * PAGE);
	_cleanup_close_ int pagemap = -1;
	struct search search = { .memory = memory, .data = data, .found = ret };
	char path[PATH_MAX];
	int r;

	ret->count = 0;
	if (!data)
		return -PTVM_NO_MEMORY;
	(void)snprintf(path, sizeof(path), "%s/%d/pagemap", roots->proc, pid);
	search.pagemap = pagemap = open(path, O_RDONLY | O_CLOEXEC);
	search.wants_touched = true;
	r = search_all(&search, mappings, error);
	search.wants_touched = false;
	return r || ret->count ? r : search_all(&search, mappings, error);
}
