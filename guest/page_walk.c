#include "guest/page_walk.h"

#include <string.h>

#include "guest/guest_memory.h"

static const uint64_t present = 1 << 0, user = 1 << 2, large = 1 << 7;
static const uint64_t no_execute = UINT64_C(1) << 63;
static const uint64_t address_bits = 0x000ffffffffff000;

enum {
	PAGE_SHIFT = 12,
	INDEX_BITS = 9,
	LARGE_LEVELS = 3,
	RUN_BYTES = 2 << 20,
	MOST_HOLES = 16 << 20
};

bool page_run_is_code(const struct page_run *run)
{
	return run->is_executable && run->is_supervisor;
}

void page_walk_init(struct page_walk *walk, const struct guest_memory *memory,
		    struct page_root root)
{
	walk->memory = memory;
	walk->root = root;
	page_walk_forget(walk);
}

void page_walk_forget(struct page_walk *walk)
{
	for (unsigned i = 0; i < PAGE_WALK_LEVELS; i++)
		walk->kept[i].address = 0;
	walk->holes = 0;
}

/* Bytes that one entry of a level maps; level 1 is that of 4 KiB pages. */
static uint64_t span(unsigned level)
{
	return UINT64_C(1) << (PAGE_SHIFT + INDEX_BITS * (level - 1));
}

/* The table at `physical`; empty where there is no memory. */
static int load_table(struct page_walk *walk, unsigned level, uint64_t physical,
		      const struct page_table **ret, struct ptvm_error *error)
{
	struct page_table *table = &walk->kept[level - 1];
	int r;

	*ret = table;
	if (table->address && table->address == physical)
		return 0;
	table->address = 0;
	r = walk->memory->read(walk->memory->context, physical, table->entries,
			       sizeof(table->entries), error);
	if (r == -PTVM_NOT_FOUND)
		memset(table->entries, 0, sizeof(table->entries));
	else if (r)
		return r;
	table->address = physical;
	return 0;
}

/* Find what maps `address`, to the end of that page. Returns 1, or 0 where nothing does, with the
 * size of the hole. */
static int walk_one(struct page_walk *walk, uint64_t address, struct page_run *ret,
		    struct ptvm_error *error)
{
	unsigned level = walk->root.is_5_level ? PAGE_WALK_LEVELS : PAGE_WALK_LEVELS - 1;
	uint64_t next = walk->root.cr3 & address_bits, entry = 0, inside = 0;
	const struct page_table *table;
	int r;

	*ret = (struct page_run){ address, 0, 0, false, true };
	for (; level; level--) {
		r = load_table(walk, level, next, &table, error);
		if (r)
			return r;
		inside = address & (span(level) - 1);
		entry = table->entries[(address / span(level)) % PAGE_WALK_ENTRIES];
		ret->size = span(level) - inside;
		if (!(entry & present))
			return 0;
		ret->is_supervisor |= !(entry & user);
		ret->is_executable &= !(entry & no_execute);
		next = entry & address_bits;
		if (level > 1 && level <= LARGE_LEVELS && entry & large)
			break;
	}
	ret->physical = (next & ~(level ? span(level) - 1 : 0)) + inside;
	return 1;
}

static bool follows(const struct page_run *run, const struct page_run *next)
{
	return next->physical == run->physical + run->size &&
	       next->is_supervisor == run->is_supervisor &&
	       next->is_executable == run->is_executable && run->size < RUN_BYTES;
}

int page_walk_next(struct page_walk *walk, uint64_t address, uint64_t end, struct page_run *ret,
		   struct ptvm_error *error)
{
	struct page_run page;
	int r = 0;

	ret->size = 0;
	for (; address < end; address += page.size) {
		r = walk_one(walk, address, &page, error);
		if (r < 0)
			return r;
		if (!r && walk->holes++ == MOST_HOLES)
			return ptvm_fail(error, PTVM_BAD_INPUT,
					 "the guest's page tables have more than %d holes",
					 MOST_HOLES);
		if (page.size > end - address)
			page.size = end - address;
		if (ret->size && (!r || !follows(ret, &page)))
			return 1;
		if (r && ret->size)
			ret->size += page.size;
		else if (r)
			*ret = page;
		if (page.size > UINT64_MAX - address)
			break;
	}
	return ret->size > 0;
}

int page_walk_read(struct page_walk *walk, uint64_t address, void *data, size_t size,
		   struct ptvm_error *error)
{
	uint64_t end = size > UINT64_MAX - address ? UINT64_MAX : address + size, at = address;
	struct page_run run;
	uint8_t *to;
	int r;

	memset(data, 0, size);
	while (at < end && (r = page_walk_next(walk, at, end, &run, error))) {
		if (r < 0)
			return r;
		to = (uint8_t *)data + (run.address - address);
		r = walk->memory->read(walk->memory->context, run.physical, to, run.size, error);
		if (r == -PTVM_NOT_FOUND)
			memset(to, 0, run.size);
		else if (r)
			return r;
		at = run.address + run.size;
	}
	return 0;
}
