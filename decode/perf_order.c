#include "decode/perf_order.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"

/* Where each run starts, and the end as the last. */
struct runs {
	size_t *items;
	size_t count, room;
};

static int find_runs(const struct perf_record *records, size_t count, struct runs *ret)
{
	if (!vec_push(ret, 0))
		return -PTVM_NO_MEMORY;
	for (size_t i = 1; i <= count; i++)
		if (i == count || records[i].time < records[i - 1].time)
			if (!vec_push(ret, i))
				return -PTVM_NO_MEMORY;
	return 0;
}

/* Merge [from, middle) and [middle, to) of `order` into `ret`. */
static void merge(const struct perf_record *records, const uint32_t *order, size_t from,
		  size_t middle, size_t to, uint32_t *ret)
{
	size_t a = from, b = middle;

	for (size_t i = from; i < to; i++)
		if (b == to || (a < middle && records[order[a]].time <= records[order[b]].time))
			ret[i] = order[a++];
		else
			ret[i] = order[b++];
}

/* Merge neighbouring runs of `from` into `to`; half as many are left. */
static void merge_all(const struct perf_record *records, const uint32_t *from, uint32_t *to,
		      struct runs *runs)
{
	size_t left = 0, i;

	for (i = 0; i + 2 < runs->count; i += 2) {
		merge(records, from, runs->items[i], runs->items[i + 1], runs->items[i + 2], to);
		runs->items[left++] = runs->items[i];
	}
	if (i + 1 < runs->count) {
		memcpy(to + runs->items[i], from + runs->items[i],
		       (runs->items[i + 1] - runs->items[i]) * sizeof(*to));
		runs->items[left++] = runs->items[i];
	}
	runs->items[left++] = runs->items[runs->count - 1];
	runs->count = left;
}

/* Put the records in place, cycle by cycle, with one record set aside. `order` is used up: an entry
 * that names itself is in place. */
static void arrange(struct perf_record *records, uint32_t *order, size_t count)
{
	for (size_t start = 0; start < count; start++) {
		struct perf_record aside = records[start];
		size_t to = start;

		while (order[to] != start) {
			size_t from = order[to];

			records[to] = records[from];
			order[to] = (uint32_t)to;
			to = from;
		}
		records[to] = aside;
		order[to] = (uint32_t)to;
	}
}

static int sort(struct perf_record *records, size_t count, struct runs *runs)
{
	_cleanup_free_ uint32_t *first = reallocarray(NULL, count, sizeof(*first));
	_cleanup_free_ uint32_t *second = reallocarray(NULL, count, sizeof(*second));
	uint32_t *from = first, *to = second;

	if (!first || !second)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		first[i] = (uint32_t)i;
	while (runs->count > 2) {
		uint32_t *swap = from;

		merge_all(records, from, to, runs);
		from = to;
		to = swap;
	}
	arrange(records, from, count);
	return 0;
}

int perf_order(struct perf_record *records, size_t count)
{
	struct runs runs = { 0 };
	int r = count > 1 ? find_runs(records, count, &runs) : 0;

	if (!r && runs.count > 2)
		r = count > UINT32_MAX ? -PTVM_NO_MEMORY : sort(records, count, &runs);
	vec_free(&runs);
	return r;
}
