#include "guest/kcore_changes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/mapped_file.h"
#include "decode/base/vec.h"
#include "decode/code/elf_file.h"
#include "decode/code/image.h"
#include "guest/channel_mount.h"
#include "guest/code_ranges.h"
#include "guest/kcore_copy.h"
#include "guest/kcore_head.h"

enum { PAGE = 4096 };

/* A copy of kcore that is mapped. */
struct copy {
	struct bytes bytes;
	struct elf_file elf;
};

static void copy_close(struct copy *copy)
{
	elf_file_close(&copy->elf);
	mapped_file_close(&copy->bytes);
}

static int copy_open(const char *directory, struct copy *ret, struct ptvm_error *error)
{
	char path[PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "%s/kcore", directory);
	r = mapped_file_open(path, &ret->bytes, error);
	return r ? r : elf_file_read(path, ret->bytes, &ret->elf, error);
}

static int make_image(const struct copy *copy, struct image *ret, uint64_t *ret_pages)
{
	int r = 0;

	for (size_t i = 0; i < copy->elf.segments.count && !r; i++) {
		const struct elf_segment *segment = &copy->elf.segments.items[i];

		r = image_add(ret, segment->address, copy->bytes.data + segment->offset,
			      segment->size);
		*ret_pages += segment->size / PAGE;
	}
	return r == -PTVM_BAD_INPUT ? 0 : r;
}

/* Add a page to those to write; where it follows the last range, it becomes part of it. */
static int keep(uint64_t address, struct code_ranges *ranges, struct kcore_changes *changes)
{
	struct code_range *last = ranges->count ? &ranges->items[ranges->count - 1] : NULL;
	const struct code_range range = { address, address + PAGE };

	if (last && last->end == address) {
		last->end = range.end;
		return 0;
	}
	if (ranges->count == KCORE_COPY_PIECES) {
		changes->left_out++;
		return 0;
	}
	return vec_push(ranges, range) ? 0 : -PTVM_NO_MEMORY;
}

static int compare_page(const struct image *before, uint64_t address, const uint8_t *page,
			struct code_ranges *ranges, struct kcore_changes *changes)
{
	size_t left = 0;
	const uint8_t *was = image_find(before, address, &left);

	if (was && left >= PAGE && !memcmp(was, page, PAGE))
		return 0;
	if (was)
		changes->changed++;
	else
		changes->added++;
	return keep(address, ranges, changes);
}

static int compare(const struct copy *before, const struct copy *after, struct code_ranges *ranges,
		   struct kcore_changes *changes)
{
	_cleanup_(image_free) struct image image = { 0 };
	uint64_t pages = 0, seen = 0;
	int r = make_image(before, &image, &pages);

	for (size_t i = 0; i < after->elf.segments.count && !r; i++) {
		const struct elf_segment *segment = &after->elf.segments.items[i];

		for (uint64_t at = 0; at + PAGE <= segment->size && !r; at += PAGE, seen++)
			r = compare_page(&image, segment->address + at,
					 after->bytes.data + segment->offset + at, ranges, changes);
	}
	/* What is there now was there before, unless it is new. */
	seen -= changes->added;
	changes->gone = pages > seen ? pages - seen : 0;
	return r;
}

/* Copy the ranges out of the copy as if it were a live kcore. */
static int copy_ranges(const char *directory, const struct copy *after,
		       const struct code_ranges *ranges, const char *path, struct ptvm_error *error)
{
	_cleanup_(kcore_head_free) struct kcore_head head = { 0 };
	_cleanup_(kcore_copy_free) struct kcore_copy copy = { .file = -1 };
	struct channel *channel = NULL;
	int r = 0;

	for (size_t i = 0; i < after->elf.segments.count && !r; i++) {
		const struct elf_segment *segment = &after->elf.segments.items[i];
		const struct kcore_segment from = { segment->address, segment->offset,
						    segment->size };

		r = vec_push(&head.segments, from) ? 0 : -PTVM_NO_MEMORY;
	}
	if (!r)
		r = kcore_copy_plan(&head, ranges, &copy, error);
	if (!r)
		r = channel_mount_new(directory, &channel, error);
	if (!r)
		r = channel_open(channel, "/kcore", error);
	if (!r)
		r = kcore_copy_create(&copy, path, error);
	r = r ? r : 1;
	while (r > 0)
		r = kcore_copy_next(&copy, channel, error);
	if (r && copy.file >= 0)
		(void)unlink(path);
	channel_free(channel);
	return r;
}

int kcore_changes_write(const char *before, const char *after, const char *path,
			struct kcore_changes *ret, struct ptvm_error *error)
{
	_cleanup_(code_ranges_free) struct code_ranges ranges = { 0 };
	_cleanup_(copy_close) struct copy old = { 0 }, new = { 0 };
	int r;

	memset(ret, 0, sizeof(*ret));
	r = copy_open(before, &old, error);
	if (!r)
		r = copy_open(after, &new, error);
	if (!r)
		r = compare(&old, &new, &ranges, ret);
	if (r || !ranges.count)
		return r;
	ranges.kernel_start = ranges.items[0].start;
	return copy_ranges(after, &new, &ranges, path, error);
}
