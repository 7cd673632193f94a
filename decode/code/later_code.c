#include "decode/code/later_code.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	TOGETHER = 16, /* bytes: differences that are closer together count as one change */
	REPLACED = 64, /* bytes: no patch of a kernel's own code is as long as this */
	PAGE = 4096,   /* modules begin at one */
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
	const struct later_range range = { address, address + size, UINT64_MAX, count };

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

	/* no kernel has code in the last page of all addresses */
	if (!memcmp(before, after.data, after.size) || address > UINT64_MAX - after.size)
		return 0;
	r = image_add(&later->image, address, after.data, after.size);
	for (size_t i = 0; !r && i < after.size; i++)
		if (before[i] != after.data[i])
			r = add_change(later, address + i);
	if (!r && is_replaced(later, address))
		r = add_replaced(later, address, after.size);
	return r == -PTVM_NO_MEMORY ? r : 0;
}

/* A part of a range, and the module that has it. */
struct owned {
	const char *module; /* NULL: none that is known */
	size_t index;       /* of the range */
};

struct owned_list {
	struct owned *items;
	size_t count, room;
};

/* The module whose code begins in a page, or goes on there. "[bpf]" and the like are not loaded as
 * a whole: their programs come one by one. */
static const char *module_of(const struct symbols *symbols, uint64_t page)
{
	size_t at = search_sorted(symbols->count, i, symbols->items[i].start < page);
	const struct symbol *symbol = at < symbols->count ? &symbols->items[at] : NULL;
	const char *module;

	if (!symbol || symbol->start - page >= PAGE)
		symbol = symbols_find(symbols, page);
	module = symbol ? symbol->module : NULL;
	return module && strcmp(module, "[bpf]") != 0 && strncmp(module, "[__", 3) != 0 ? module
											: NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Append a range in parts of one module each. */
static int cut(const struct later_range *range, const struct symbols *symbols,
	       struct later_code *to, struct owned_list *owned)
{
	uint64_t end;

	for (uint64_t at = range->start; at < range->end; at = end) {
		const struct owned part = { module_of(symbols, at & -(uint64_t)PAGE),
					    to->ranges.count };

		end = at - at % PAGE + PAGE;
		if (end - 1 >= range->end) /* it may be 2^64 */
			end = range->end;
		if (at > range->start &&
		    is_same(owned->items[owned->count - 1].module, part.module)) {
			to->ranges.items[to->ranges.count - 1].end = end;
			continue;
		}
		if (!vec_push(owned, part) ||
		    !vec_push(&to->ranges, (struct later_range){ at, end, UINT64_MAX, part.index }))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct owned *left = a, *right = b;
	int r = strcmp(left->module ? left->module : "", right->module ? right->module : "");

	return r ? r : sort_order(left->index, right->index);
}

/* Have the ranges of each module begin together. */
static void join(struct owned_list *owned, struct later_range *ranges)
{
	sort_vec(owned, compare);
	for (size_t i = 1; i < owned->count; i++) {
		const struct owned *before = &owned->items[i - 1], *part = &owned->items[i];

		if (part->module && is_same(part->module, before->module))
			ranges[part->index].first = ranges[before->index].first;
	}
}

int later_code_group(struct later_code *later, const struct symbols *symbols)
{
	struct owned_list owned = { 0 };
	struct later_code parts = { 0 };
	int r = 0;

	for (size_t i = 0; !r && i < later->ranges.count; i++)
		r = cut(&later->ranges.items[i], symbols, &parts, &owned);
	if (!r && owned.count) {
		join(&owned, parts.ranges.items);
		vec_free(&later->ranges);
		memcpy(&later->ranges, &parts.ranges, sizeof(parts.ranges));
	} else {
		vec_free(&parts.ranges);
	}
	vec_free(&owned);
	return r;
}

uint64_t later_code_since(const struct later_code *later, const struct later_range *range)
{
	switch (later->version) {
	case LATER_NEVER: return UINT64_MAX;
	case LATER_ALWAYS: return 0;
	default: return range->since;
	}
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
