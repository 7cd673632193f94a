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

/* Merge [from, middle) and [middle, to) into `ret`. */
static void merge(const struct perf_record *records, size_t from, size_t middle, size_t to,
		  struct perf_record *ret)
{
	size_t a = from, b = middle;

	for (size_t i = from; i < to; i++)
		if (b == to || (a < middle && records[a].time <= records[b].time))
			ret[i] = records[a++];
		else
			ret[i] = records[b++];
}

/* Merge neighbouring runs of `from` into `to`; half as many are left. */
static void merge_all(const struct perf_record *from, struct perf_record *to, struct runs *runs)
{
	size_t left = 0, i;

	for (i = 0; i + 2 < runs->count; i += 2) {
		merge(from, runs->items[i], runs->items[i + 1], runs->items[i + 2], to);
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

int perf_order(struct perf_record *records, size_t count)
{
	_cleanup_free_ struct perf_record *other = NULL;
	struct perf_record *from = records, *to;
	struct runs runs = { 0 };
	int r = count > 1 ? find_runs(records, count, &runs) : 0;

	if (!r && runs.count > 2) {
		other = to = reallocarray(NULL, count, sizeof(*records));
		r = other ? 0 : -PTVM_NO_MEMORY;
		while (!r && runs.count > 2) {
			struct perf_record *swap = from;

			merge_all(from, to, &runs);
			from = to;
			to = swap;
		}
		if (!r && from != records)
			memcpy(records, from, count * sizeof(*records));
	}
	vec_free(&runs);
	return r;
}
