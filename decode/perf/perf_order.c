#include "decode/perf/perf_order.h"

#include <string.h>

#include "decode/base/spool.h"

/* Where each run starts, and the end as the last. */
struct runs {
	size_t *items;
	size_t count, room;
};

static int find_runs(const struct perf_records *records, struct runs *ret)
{
	enum { OFTEN = 1 << 16 };
	const struct perf_record *items = records->items;

	if (!spool_push(ret, 0))
		return -PTVM_NO_MEMORY;
	for (size_t i = 1; i <= records->count; i++) {
		if ((i == records->count || items[i].time < items[i - 1].time) &&
		    !spool_push(ret, i))
			return -PTVM_NO_MEMORY;
		if (!(i % OFTEN))
			spool_vec_rest(records);
	}
	return 0;
}

/* A sort: records, which stay where they are to the end, and their numbers in order, twice. */
struct sort {
	struct perf_records *records;
	struct order {
		uint32_t *items;
		size_t count, room;
	} from, to;
	size_t steps;
};

/* Give pages back now and then: all of this may be far larger than memory. */
static void rest(struct sort *sort)
{
	enum { OFTEN = 1 << 16 };

	if (++sort->steps % OFTEN)
		return;
	spool_vec_rest(sort->records);
	spool_vec_rest(&sort->from);
	spool_vec_rest(&sort->to);
}

/* Merge [from, middle) and [middle, to) of the order. */
static void merge(struct sort *sort, size_t from, size_t middle, size_t to)
{
	const struct perf_record *records = sort->records->items;
	const uint32_t *order = sort->from.items;
	size_t a = from, b = middle;

	for (size_t i = from; i < to; i++) {
		if (b == to || (a < middle && records[order[a]].time <= records[order[b]].time))
			sort->to.items[i] = order[a++];
		else
			sort->to.items[i] = order[b++];
		rest(sort);
	}
}

/* Merge neighbouring runs; half as many are left. */
static void merge_all(struct sort *sort, struct runs *runs)
{
	struct order merged = sort->to;
	size_t left = 0, i;

	for (i = 0; i + 2 < runs->count; i += 2) {
		merge(sort, runs->items[i], runs->items[i + 1], runs->items[i + 2]);
		runs->items[left++] = runs->items[i];
	}
	if (i + 1 < runs->count) {
		memcpy(sort->to.items + runs->items[i], sort->from.items + runs->items[i],
		       (runs->items[i + 1] - runs->items[i]) * sizeof(*sort->to.items));
		runs->items[left++] = runs->items[i];
	}
	runs->items[left++] = runs->items[runs->count - 1];
	runs->count = left;
	sort->to = sort->from;
	sort->from = merged;
}

/* Put the records in place, cycle by cycle, with one record set aside. The order is used up: an
 * entry that names itself is in place. */
static void arrange(struct sort *sort)
{
	struct perf_record *records = sort->records->items;
	uint32_t *order = sort->from.items;

	for (size_t start = 0; start < sort->records->count; start++) {
		struct perf_record aside = records[start];
		size_t to = start;

		while (order[to] != start) {
			size_t from = order[to];

			records[to] = records[from];
			order[to] = (uint32_t)to;
			to = from;
			rest(sort);
		}
		records[to] = aside;
		order[to] = (uint32_t)to;
		rest(sort);
	}
}

static int run(struct sort *sort, struct runs *runs)
{
	for (size_t i = 0; i < sort->records->count; i++) {
		if (!spool_push(&sort->from, (uint32_t)i) || !spool_push(&sort->to, 0))
			return -PTVM_NO_MEMORY;
		rest(sort);
	}
	while (runs->count > 2)
		merge_all(sort, runs);
	arrange(sort);
	return 0;
}

static int sort(struct perf_records *records, struct runs *runs)
{
	struct sort all = { .records = records };
	int r = records->count > UINT32_MAX ? -PTVM_NO_MEMORY : run(&all, runs);

	spool_vec_free(&all.from);
	spool_vec_free(&all.to);
	return r;
}

int perf_order(struct perf_records *records)
{
	struct runs runs = { 0 };
	int r = records->count > 1 ? find_runs(records, &runs) : 0;

	if (!r && runs.count > 2)
		r = sort(records, &runs);
	spool_vec_free(&runs);
	return r;
}
