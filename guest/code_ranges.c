#include "guest/code_ranges.h"

#include <inttypes.h>
#include <string.h>

#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/modules.h"
#include "decode/code/symbols.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"

/* A hole of NEAR bytes or less is copied, which costs less than one more range. */
enum { PAGE = 4096, NEAR = 16 * PAGE, LABELS_MAX = 4 << 20 };

static struct code_range whole_pages(uint64_t start, uint64_t end)
{
	uint64_t last = (end - 1) | (PAGE - 1);

	return (struct code_range){ start & ~(uint64_t)(PAGE - 1),
				    last == UINT64_MAX ? last - (PAGE - 1) : last + 1 };
}

int code_ranges_add(struct code_ranges *ranges, uint64_t start, uint64_t end)
{
	struct code_range range = whole_pages(start, end);

	if (range.start >= range.end)
		return 0;
	return vec_push(ranges, range) ? 0 : -PTVM_NO_MEMORY;
}

int code_ranges_add_pages(struct code_ranges *ranges, struct page_walk *walk, uint64_t start,
			  struct ptvm_error *error)
{
	struct page_run run;
	int r;

	while ((r = page_walk_next(walk, start, kernel_image_last, &run, error)) > 0) {
		start = run.address + run.size;
		if (page_run_is_code(&run))
			r = code_ranges_add(ranges, run.address, start);
		if (r < 0)
			break;
	}
	return r;
}

SORT_BY(compare, struct code_range, start)

void code_ranges_join(struct code_ranges *ranges)
{
	struct code_range *kept = ranges->items, *next;

	if (!ranges->count)
		return;
	sort_vec(ranges, compare);
	for (next = kept + 1; next < ranges->items + ranges->count; next++) {
		if (next->start > kept->end && next->start - kept->end > NEAR)
			*++kept = *next;
		else if (next->end > kept->end)
			kept->end = next->end;
	}
	ranges->count = (size_t)(kept - ranges->items) + 1;
}

/* Only the page of a symbol: where it ends is not known for sure, and the next one is near. */
static int add_symbols(const struct symbols *symbols, struct code_ranges *ranges)
{
	const struct symbol *symbol = symbols->items;
	int r = 0;

	for (; symbol < symbols->items + symbols->count && !r; symbol++)
		if (symbol->module && symbol->start >= ranges->kernel_start)
			r = code_ranges_add(ranges, symbol->start, symbol->start + 1);
	return r;
}

int code_ranges_add_labels(struct code_ranges *ranges, uint64_t start, uint64_t end)
{
	if (start < ranges->kernel_start || end <= start || end - start > LABELS_MAX)
		return 0;
	ranges->labels = whole_pages(start, end + 1);
	return code_ranges_add(ranges, start, end + 1);
}

int code_ranges_find(const struct symbols *symbols, const struct modules *modules,
		     struct code_ranges *ret, struct ptvm_error *error)
{
	uint64_t start = symbols_address(symbols, "_stext");
	uint64_t end = symbols_address(symbols, "_etext");
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!start || end <= start)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "/proc/kallsyms: no kernel text from %#" PRIx64 " to %#" PRIx64,
				 start, end);
	ret->kernel_start = start;
	r = code_ranges_add(ret, start, end);
	if (!r)
		r = code_ranges_add_labels(ret, symbols_address(symbols, "__start___jump_table"),
					   symbols_address(symbols, "__stop___jump_table"));
	for (size_t i = 0; i < modules->count && !r; i++)
		r = code_ranges_add(ret, modules->items[i].start, modules->items[i].end);
	if (!r)
		r = add_symbols(symbols, ret);
	if (!r)
		code_ranges_join(ret);
	return r;
}

void code_ranges_free(struct code_ranges *ranges)
{
	vec_free(ranges);
}
