#include "decode/base/rank_heap.h"

#include <stdlib.h>

#include "decode/base/error.h"

int rank_heap_init(struct rank_heap *heap, size_t room)
{
	*heap = (struct rank_heap){ .items = calloc(room + 1, sizeof(struct ranked *)) };
	return heap->items ? 0 : -PTVM_NO_MEMORY;
}

static void put(struct rank_heap *heap, struct ranked *thing, size_t place)
{
	heap->items[place] = thing;
	thing->place = place;
}

static void rise(struct rank_heap *heap, struct ranked *thing)
{
	size_t place = thing->place;

	while (place && heap->items[(place - 1) / 2]->rank > thing->rank) {
		put(heap, heap->items[(place - 1) / 2], place);
		place = (place - 1) / 2;
	}
	put(heap, thing, place);
}

static void sink(struct rank_heap *heap, struct ranked *thing)
{
	size_t place = thing->place, below;

	while ((below = 2 * place + 1) < heap->count) {
		if (below + 1 < heap->count &&
		    heap->items[below + 1]->rank < heap->items[below]->rank)
			below++;
		if (heap->items[below]->rank >= thing->rank)
			break;
		put(heap, heap->items[below], place);
		place = below;
	}
	put(heap, thing, place);
}

void rank_heap_add(struct rank_heap *heap, struct ranked *thing)
{
	put(heap, thing, heap->count++);
	rise(heap, thing);
}

void rank_heap_move(struct rank_heap *heap, struct ranked *thing, uint64_t rank)
{
	thing->rank = rank;
	rise(heap, thing);
	sink(heap, thing);
}

struct ranked *rank_heap_first(const struct rank_heap *heap)
{
	return heap->count && heap->items[0]->rank != RANK_LAST ? heap->items[0] : NULL;
}

void rank_heap_free(struct rank_heap *heap)
{
	free(heap->items);
	*heap = (struct rank_heap){ .items = NULL };
}
