#include "host/vm/ram_mappings.h"

#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "host/machine/map_line.h"

enum { PAGE = 4096, READ = 1, WRITE = 2, PRIVATE = 2 };

static bool may_be_ram(const struct map_line *map)
{
	return map->protection == (READ | WRITE) && !(map->from % PAGE) && !(map->to % PAGE);
}

static int add_mapping(struct ram_mappings *mappings, const struct map_line *map)
{
	const struct ram_mapping mapping = { map->from, map->to,
					     map->flags == PRIVATE && map->inode };

	if (mappings->count == RAM_MAPPINGS)
		return 0;
	return vec_push(mappings, mapping) ? 0 : -PTVM_NO_MEMORY;
}

/* Insert it by its size; the smallest one of too many is dropped. */
static void add_extent(struct ram_mappings *mappings, struct ram_extent extent)
{
	struct ram_extent *items = mappings->extents;
	size_t at = mappings->extent_count;

	while (at && items[at - 1].to - items[at - 1].from < extent.to - extent.from)
		at--;
	if (at == RAM_EXTENTS || extent.to - extent.from < RAM_EXTENT_BYTES)
		return;
	if (mappings->extent_count < RAM_EXTENTS)
		mappings->extent_count++;
	memmove(items + at + 1, items + at, (mappings->extent_count - at - 1) * sizeof(*items));
	items[at] = extent;
}

static void add_extents(struct ram_mappings *mappings)
{
	const struct ram_mapping *items = mappings->items;

	for (size_t i = 0; i < mappings->count; i++)
		for (size_t k = i; k < mappings->count && k < i + RAM_EXTENT_MAPPINGS &&
				   (k == i || items[k].from == items[k - 1].to);
		     k++)
			add_extent(mappings, (struct ram_extent){ items[i].from, items[k].to });
}

int ram_mappings_read(const struct roots *roots, pid_t pid, struct ram_mappings *ret,
		      struct ptvm_error *error)
{
	_cleanup_(map_lines_close) struct map_lines maps = { 0 };
	struct map_line map;
	int r = map_lines_open(roots, pid, &maps, error);

	while (!r && map_lines_next(&maps, &map))
		if (may_be_ram(&map))
			r = add_mapping(ret, &map);
	add_extents(ret);
	return r;
}

void ram_mappings_free(struct ram_mappings *mappings)
{
	vec_free(mappings);
}
