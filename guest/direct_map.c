#include "guest/direct_map.h"

#include <stdbool.h>
#include <string.h>

#include "guest/guest_memory.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"
#include "guest/vmcoreinfo.h"

/* Where the half of the kernel begins; the map is the first thing in it. */
static const uint64_t first_of_4_levels = 0xffff800000000000;
static const uint64_t first_of_5_levels = 0xff00000000000000;
static const uint64_t low_limit = UINT64_C(4) << 30;

enum {
	UTS_BYTES = 512,       /* of struct uts_namespace, its struct new_utsname */
	BASE_ALIGN = 1 << 30,  /* with and without KASLR */
	FIRST_RAM = 1 << 20,   /* RAM begins below */
	HOLE_BYTES = 64 << 20, /* larger ones part RAM from what was plugged in */
	MOST_RUNS = 4 << 20,
};

/* Memory, and whether something was read that is not there. */
struct watched_memory {
	const struct guest_memory *memory;
	bool has_missed;
};

static int read_watched(void *context, uint64_t address, void *data, size_t size,
			struct ptvm_error *error)
{
	struct watched_memory *watched = context;
	int r = watched->memory->read(watched->memory->context, address, data, size, error);

	watched->has_missed |= r == -PTVM_NOT_FOUND;
	return r;
}

static int has_its_name(struct page_walk *walk, const struct vmcoreinfo *info,
			struct ptvm_error *error)
{
	char uts[UTS_BYTES];
	int r = page_walk_read(walk, info->uts_address, uts, sizeof(uts), error);

	if (r)
		return r;
	return memmem(uts, sizeof(uts), info->release, strlen(info->release) + 1) ? 0
										  : -PTVM_NOT_FOUND;
}

static void add(struct direct_map *map, const struct page_run *run)
{
	const uint64_t end = run->physical + run->size;
	const uint64_t high_end = map->high_end ? map->high_end : low_limit;

	if (end <= low_limit)
		map->low_end = end;
	else if (run->physical <= high_end || run->physical - high_end < HOLE_BYTES)
		map->high_end = end;
	map->end = end;
}

/* The map ends where addresses no longer follow the physical ones. */
static int read_map(struct page_walk *walk, struct direct_map *ret, struct ptvm_error *error)
{
	uint64_t at = walk->root.is_5_level ? first_of_5_levels : first_of_4_levels, base;
	struct page_run run;
	unsigned runs = 0;
	int r = page_walk_next(walk, at, kernel_image_first, &run, error);

	base = run.address - run.physical;
	if (r > 0 && (base % BASE_ALIGN || run.physical >= FIRST_RAM))
		return -PTVM_NOT_FOUND;
	for (; r > 0 && run.address - run.physical == base && runs < MOST_RUNS; runs++) {
		add(ret, &run);
		at = run.address + run.size;
		r = page_walk_next(walk, at, kernel_image_first, &run, error);
	}
	if (r < 0) /* too many holes are as bad as too many runs */
		return r == -PTVM_BAD_INPUT ? -PTVM_NOT_FOUND : r;
	return runs && runs < MOST_RUNS ? 0 : -PTVM_NOT_FOUND;
}

int direct_map_read(const struct guest_memory *memory, const struct vmcoreinfo *info,
		    struct direct_map *ret, struct ptvm_error *error)
{
	struct watched_memory watched = { memory, false };
	const struct guest_memory reader = { read_watched, &watched };
	struct page_walk walk;
	int r;

	*ret = (struct direct_map){ 0 };
	page_walk_init(&walk, &reader, info->root);
	r = vmcoreinfo_check_root(info, &walk, error);
	if (!r)
		r = has_its_name(&walk, info, error);
	if (!r)
		r = read_map(&walk, ret, error);
	/* Page tables that are not in memory would look like a hole in RAM. */
	return !r && watched.has_missed ? -PTVM_NOT_FOUND : r;
}
