#include "decode/code/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/huge_pages.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

enum { PAGE = 4096 };

void symbols_reserve(struct symbols *symbols, size_t count)
{
	struct symbol *items;

	if (symbols->items || count < HUGE_PAGE / sizeof(*items) ||
	    count > SIZE_MAX / sizeof(*items))
		return;
	items = huge_pages_alloc(count * sizeof(*items));
	if (!items)
		return;
	symbols->items = items;
	symbols->room = count;
}

int symbols_add(struct symbols *symbols, const struct symbol *symbol)
{
	return vec_push(symbols, *symbol) ? 0 : -PTVM_NO_MEMORY;
}

/* The end of the run of rising starts that begins at `from`. */
static size_t run_end(const struct symbol *items, size_t from, size_t count)
{
	size_t i = from + 1;

	while (i < count && items[i - 1].start <= items[i].start)
		i++;
	return i < count ? i : count;
}

/* Merge two sorted runs that follow on each other; of equals the first run's come first. */
static void merge(const struct symbol *a, const struct symbol *b, const struct symbol *end,
		  struct symbol *to)
{
	const struct symbol *middle = b;

	while (a < middle && b < end)
		*to++ = b->start < a->start ? *b++ : *a++;
	memcpy(to, a, (middle - a) * sizeof(*a));
	memcpy(to + (middle - a), b, (end - b) * sizeof(*b));
}

/* The first of `count` sorted symbols that starts after `start`. */
static size_t upper_bound(const struct symbol *items, size_t count, uint64_t start)
{
	return search_sorted(count, i, items[i].start <= start);
}

/* Merge runs pairwise from `from` on until they are one. */
static void merge_runs(struct symbol *items, size_t from, size_t count, struct symbol *spare)
{
	while (run_end(items, from, count) < count) {
		for (size_t a = from, b, end; a < count; a = end) {
			b = run_end(items, a, count);
			end = b < count ? run_end(items, b, count) : count;
			merge(items + a, items + b, items + end, spare + (a - from));
		}
		memcpy(items + from, spare, (count - from) * sizeof(*items));
	}
}

/*
 * Natural merge sort: stable, since the order in the file decides between doubles, and linear for
 * tables that are sorted. The kernel's part of kallsyms is sorted, that of its modules is not: the
 * first long run is left alone until the rest is one run, too; then only what overlaps is merged.
 */
static int sort(struct symbols *symbols)
{
	struct symbol *items = symbols->items, *spare;
	size_t count = symbols->count, head = run_end(items, 0, count), lowest = head;

	if (head == count)
		return 0;
	for (size_t i = head; i < count; i++)
		if (items[i].start < items[lowest].start)
			lowest = i;
	lowest = upper_bound(items, head, items[lowest].start);
	spare = reallocarray(NULL, count - lowest, sizeof(*spare));
	if (!spare)
		return -PTVM_NO_MEMORY;
	merge_runs(items, head, count, spare);
	merge_runs(items, lowest, count, spare);
	free(spare);
	return 0;
}

/* perf's ends (tools/perf/util/symbol.c of 6.1, symbols__fixup_end): between kernel and modules
 * lie gaps that belong to nobody, so the last symbol before such a border is not stretched. */
static void give_ends(struct symbols *symbols, bool is_kallsyms)
{
	struct symbol *items = symbols->items;

	for (size_t i = 0; i < symbols->count; i++) {
		bool is_last = i + 1 == symbols->count;

		if (items[i].end > items[i].start)
			continue;
		if (is_last || (is_kallsyms && !items[i].module != !items[i + 1].module))
			items[i].end = (items[i].start + 2 * PAGE - 1) & ~(uint64_t)(PAGE - 1);
		else
			items[i].end = items[i + 1].start;
	}
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Which of two symbols at one address perf prints: the one with a length, not weak, global, with
 * fewer leading underscores, with the longer name, the first. */
static bool is_better(const struct symbol *a, const struct symbol *b)
{
	size_t underscores_a = underscores(a->name), underscores_b = underscores(b->name);
	size_t length_a = strlen(a->name), length_b = strlen(b->name);

	if ((a->end != a->start) != (b->end != b->start))
		return a->end != a->start;
	if (a->is_weak != b->is_weak)
		return b->is_weak;
	if (a->is_global != b->is_global)
		return a->is_global;
	if (underscores_a != underscores_b)
		return underscores_a < underscores_b;
	return length_a >= length_b;
}

static int drop_doubles(struct symbols *symbols)
{
	struct symbol *items = symbols->items;
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		struct symbol loser = items[i];

		if (!kept || items[kept - 1].start != items[i].start) {
			items[kept++] = items[i];
			continue;
		}
		if (!is_better(&items[kept - 1], &items[i])) {
			loser = items[kept - 1];
			items[kept - 1] = items[i];
		}
		if (!vec_push(&symbols->aliases, loser))
			return -PTVM_NO_MEMORY;
	}
	symbols->count = kept;
	return 0;
}

int symbols_finish(struct symbols *symbols, bool is_kallsyms)
{
	if (!symbols->count)
		return 0;
	if (sort(symbols))
		return -PTVM_NO_MEMORY;
	/* perf gives ends first: of doubles without a size the last in the file wins, because it
	 * alone reaches to the next address. */
	give_ends(symbols, is_kallsyms);
	return drop_doubles(symbols);
}

void symbols_clip(struct symbols *symbols, const struct image *image)
{
	const struct image_piece *piece = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		struct symbol symbol = symbols->items[i];

		if (!piece || symbol.start - piece->start >= piece->end - piece->start)
			piece = image_piece_at(image, symbol.start);
		if (!piece)
			continue;
		if (symbol.end - 1 > piece->end - 1)
			symbol.end = piece->end;
		symbols->items[kept++] = symbol;
	}
	symbols->count = kept;
}

const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address)
{
	size_t low = search_sorted(symbols->count, i, symbols->items[i].start <= address);
	const struct symbol *symbol;

	if (!low)
		return NULL;
	symbol = &symbols->items[low - 1];
	return address - symbol->start < symbol->end - symbol->start ? symbol : NULL;
}

static uint64_t address_in(const struct symbol *items, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(items[i].name, name))
			return items[i].start;
	return 0;
}

uint64_t symbols_address(const struct symbols *symbols, const char *name)
{
	uint64_t address = address_in(symbols->items, symbols->count, name);

	return address ? address : address_in(symbols->aliases.items, symbols->aliases.count, name);
}

void symbols_free(struct symbols *symbols)
{
	vec_free(&symbols->aliases);
	vec_free(symbols);
	arena_free(&symbols->names);
}
