#include "guest/kernel_image.h"

#include <stdlib.h>
#include <string.h>

#include "guest/page_walk.h"

/* A hole this large ends the image: what Linux frees of it after it booted is smaller. Where it is
 * not placed by chance, modules are further off, and otherwise behind the limit. */
enum { FAR = 16 << 20 };

static int find(struct page_walk *walk, uint64_t *ret_start, uint64_t *ret_end,
		struct ptvm_error *error)
{
	uint64_t at = kernel_image_first;
	struct page_run run;
	int r;

	*ret_start = *ret_end = 0;
	while ((r = page_walk_next(walk, at, kernel_image_limit, &run, error)) > 0) {
		if (!run.is_supervisor) {
			at = run.address + run.size;
			continue;
		}
		if (!*ret_start)
			*ret_start = run.address;
		else if (run.address - *ret_end >= FAR)
			break;
		at = *ret_end = run.address + run.size;
		if (*ret_end - *ret_start > KERNEL_IMAGE_BYTES)
			return ptvm_fail(error, PTVM_BAD_INPUT,
					 "the guest's kernel is larger than %d MiB",
					 KERNEL_IMAGE_BYTES >> 20);
	}
	if (r < 0)
		return r;
	return *ret_start
		       ? 0
		       : ptvm_fail(error, PTVM_NOT_FOUND,
				   "no kernel of Linux in the guest's memory: it has not booted, "
				   "or is another system");
}

int kernel_image_read(struct page_walk *walk, struct kernel_image *ret, struct ptvm_error *error)
{
	uint64_t start, end;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = find(walk, &start, &end, error);
	if (r)
		return r;
	ret->data = malloc(end - start);
	if (!ret->data)
		return -PTVM_NO_MEMORY;
	ret->address = start;
	ret->bytes = (struct bytes){ ret->data, end - start };
	return page_walk_read(walk, start, ret->data, end - start, error);
}

int kernel_image_measure(struct page_walk *walk, uint64_t *ret, struct ptvm_error *error)
{
	uint64_t at = kernel_image_first;
	struct page_run run;
	int r;

	*ret = 0;
	while ((r = page_walk_next(walk, at, kernel_image_last, &run, error)) > 0) {
		*ret += run.is_supervisor ? run.size : 0;
		at = run.address + run.size;
	}
	return r;
}

void kernel_image_free(struct kernel_image *image)
{
	free(image->data);
	memset(image, 0, sizeof(*image));
}
