#include "decode/pt/pt_offsets.h"

#include <string.h>

bool pt_offsets_find(const struct pt_offsets *offsets, uint64_t vmcs, uint64_t *ret)
{
	for (unsigned i = 0; i < offsets->count; i++) {
		if (offsets->items[i].vmcs != vmcs)
			continue;
		*ret = offsets->items[i].offset;
		return true;
	}
	return false;
}

void pt_offsets_set(struct pt_offsets *offsets, uint64_t vmcs, uint64_t offset)
{
	unsigned i = 0;

	while (i < offsets->count && offsets->items[i].vmcs != vmcs)
		i++;
	if (i == PT_OFFSETS_MAX) {
		i--;
		memmove(offsets->items, offsets->items + 1, i * sizeof(offsets->items[0]));
	} else if (i == offsets->count) {
		offsets->count++;
	}
	offsets->items[i] = (struct pt_offset){ vmcs, offset };
}
