#include "decode/later_code.h"

#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

enum {
	TOGETHER = 16, /* bytes: what is so close is one change */
	REPLACED = 64, /* bytes: a change of so many is none that a kernel makes to its own code */
};

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

/* Note that a page was replaced. */
static int add_replaced(struct later_code *later, uint64_t address, uint64_t size)
{
	size_t count = later->ranges.count;
	struct later_range *last = count ? &later->ranges.items[count - 1] : NULL;
	const struct later_range range = { address, address + size, UINT64_MAX };

	if (last && last->end == address) {
		last->end = range.end;
		return 0;
	}
	return vec_push(&later->ranges, range) ? 0 : -PTVM_NO_MEMORY;
}

/* Whether there is a long change from `address` on, which may begin before. */
static bool is_replaced(const struct later_code *later, uint64_t address)
{
	for (size_t i = later->changes.count; i-- > 0;) {
		const struct later_change *change = &later->changes.items[i];

		if (change->end <= address)
			break;
		if (change->end - change->start >= REPLACED)
			return true;
	}
	return false;
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
	if (!r && is_replaced(later, address))
		r = add_replaced(later, address, after.size);
	return r == -PTVM_NO_MEMORY ? r : 0;
}

/* The first change that ends behind `address`. */
static size_t find(const struct later_code *later, uint64_t address)
{
	return search_sorted(later->changes.count, i, later->changes.items[i].end <= address);
}

struct bytes later_code_find(const struct later_code *later, uint64_t address, size_t size)
{
	const struct later_range *range = later_code_range(later, address);
	size_t i = find(later, address), left = 0;
	const uint8_t *data;

	if (range && range->start <= address)
		return (struct bytes){ 0 };
	if (i == later->changes.count || (later->changes.items[i].start > address &&
					  later->changes.items[i].start - address >= size))
		return (struct bytes){ 0 };
	data = image_find(&later->image, address, &left);
	return data ? (struct bytes){ data, left } : (struct bytes){ 0 };
}

struct later_range *later_code_range(const struct later_code *later, uint64_t address)
{
	size_t at = search_sorted(later->ranges.count, i, later->ranges.items[i].end <= address);

	return at < later->ranges.count ? &later->ranges.items[at] : NULL;
}

void later_code_free(struct later_code *later)
{
	vec_free(&later->ranges);
	image_free(&later->image);
	vec_free(&later->changes);
}
