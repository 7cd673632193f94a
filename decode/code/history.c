#include "decode/code/history.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

int history_add(struct history *history, uint64_t start, uint64_t end, uint64_t time)
{
	struct history_item item = { start, end < start ? start : end, time };

	if (history->list.count >= UINT32_MAX)
		return -PTVM_NO_MEMORY;
	return vec_push(&history->list, item) ? 0 : -PTVM_NO_MEMORY;
}

/* The starts and ends of all items, sorted, each once. */
static int make_borders(struct history *history)
{
	size_t count = history->list.count, kept = 0;
	uint64_t *borders = reallocarray(NULL, count, 2 * sizeof(*borders));

	if (!borders)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		borders[2 * i] = history->list.items[i].start;
		borders[2 * i + 1] = history->list.items[i].end;
	}
	qsort(borders, 2 * count, sizeof(*borders), sort_numbers);
	for (size_t i = 0; i < 2 * count; i++)
		if (!kept || borders[kept - 1] != borders[i])
			borders[kept++] = borders[i];
	history->borders = borders;
	history->border_count = kept;
	return 0;
}

/* How many borders lie at or below `address`: cell n - 1 begins with the last of them. */
static size_t borders_up_to(const struct history *history, uint64_t address)
{
	return search_sorted(history->border_count, i, history->borders[i] <= address);
}

/* The cells of an item: [*from, *to). */
static void cells_of(const struct history *history, const struct history_item *item, size_t *from,
		     size_t *to)
{
	*from = borders_up_to(history, item->start) - 1;
	*to = borders_up_to(history, item->end) - 1;
}

/* How many pieces items may be cut into. */
static size_t most_held(const struct history *history)
{
	size_t most = HISTORY_HELD_FREE + history->list.count * HISTORY_HELD_EACH;

	return most < HISTORY_MAX_HELD ? most : HISTORY_MAX_HELD;
}

/* Count in first[i + 1] the items that cover cell i, then sum up. Items that do not fit become
 * empty; returns their number. */
static size_t count_held(struct history *history)
{
	const size_t most = most_held(history);
	size_t total = 0, dropped = 0, from, to;

	for (size_t i = 0; i < history->list.count; i++) {
		struct history_item *item = &history->list.items[i];

		cells_of(history, item, &from, &to);
		if (total + (to - from) > most) {
			item->end = item->start;
			dropped++;
			continue;
		}
		total += to - from;
		for (size_t cell = from; cell < to; cell++)
			history->first[cell + 1]++;
	}
	for (size_t i = 1; i <= history->border_count; i++)
		history->first[i] += history->first[i - 1];
	return dropped;
}

static void free_tables(struct history *history)
{
	free(history->borders);
	free(history->first);
	free(history->held);
	history->borders = NULL;
	history->first = history->held = NULL;
	history->border_count = 0;
}

int history_finish(struct history *history, size_t *ret_dropped)
{
	uint32_t *fill;
	size_t from, to;

	*ret_dropped = 0;
	free_tables(history);
	if (!history->list.count)
		return 0;
	if (make_borders(history))
		return -PTVM_NO_MEMORY;
	history->first = calloc(history->border_count + 1, sizeof(*history->first));
	fill = calloc(history->border_count + 1, sizeof(*fill));
	if (!history->first || !fill)
		goto no_memory;
	*ret_dropped = count_held(history);
	history->held = calloc(history->first[history->border_count] + 1, sizeof(*history->held));
	if (!history->held)
		goto no_memory;
	for (size_t i = 0; i < history->list.count; i++) {
		cells_of(history, &history->list.items[i], &from, &to);
		for (size_t cell = from; cell < to; cell++)
			history->held[history->first[cell] + fill[cell]++] = (uint32_t)i;
	}
	free(fill);
	return 0;
no_memory:
	free(fill);
	return -PTVM_NO_MEMORY;
}

struct history_view history_find(const struct history *history, uint64_t address, uint64_t time)
{
	struct history_view view = { 0, 0, 0, UINT64_MAX, HISTORY_NONE, HISTORY_NONE };
	const struct history_item *items = history->list.items;
	size_t above = borders_up_to(history, address);
	uint32_t low, begin;

	view.end = above < history->border_count ? history->borders[above] : 0;
	if (!above || !history->held)
		return view;
	view.start = history->borders[above - 1];
	begin = history->first[above - 1];
	low = begin + (uint32_t)search_sorted(history->first[above] - begin, i,
					      items[history->held[begin + i]].time <= time);
	if (low > begin) {
		view.item = history->held[low - 1];
		view.from = items[view.item].time;
	}
	if (low < history->first[above]) {
		view.next = history->held[low];
		view.to = items[view.next].time;
	}
	return view;
}

void history_free(struct history *history)
{
	vec_free(&history->list);
	free_tables(history);
}
