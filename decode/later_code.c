#include "decode/later_code.h"

#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

enum { TOGETHER = 16 }; /* bytes: what is so close is one change */

static int add_change(struct later_code *later, uint64_t address)
{
	size_t count = later->changes.count;
	struct later_change *last = count ? &later->changes.items[count - 1] : NULL;

	if (last && address >= last->end && address - last->end < TOGETHER) {
		last->end = address + 1;
		return 0;
	}
	return vec_push(&later->changes, (struct later_change){ address, address + 1 })
		       ? 0
		       : -PTVM_NO_MEMORY;
}

int later_code_add(struct later_code *later, uint64_t address, const uint8_t *before,
		   struct bytes after)
{
	int r;

	if (!memcmp(before, after.data, after.size))
		return 0;
	r = image_add(&later->image, address, after.data, after.size);
	for (size_t i = 0; !r && i < after.size; i++)
		if (before[i] != after.data[i])
			r = add_change(later, address + i);
	return r == -PTVM_NO_MEMORY ? r : 0;
}

/* The first change that ends behind `address`. */
static size_t find(const struct later_code *later, uint64_t address)
{
	return search_sorted(later->changes.count, i, later->changes.items[i].end <= address);
}

struct bytes later_code_find(const struct later_code *later, uint64_t address, size_t size)
{
	size_t i = find(later, address), left = 0;
	const uint8_t *data;

	if (i == later->changes.count || (later->changes.items[i].start > address &&
					  later->changes.items[i].start - address >= size))
		return (struct bytes){ 0 };
	data = image_find(&later->image, address, &left);
	return data ? (struct bytes){ data, left } : (struct bytes){ 0 };
}

void later_code_free(struct later_code *later)
{
	image_free(&later->image);
	vec_free(&later->changes);
}
