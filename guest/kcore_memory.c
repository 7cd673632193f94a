#include "guest/kcore_memory.h"

#include "guest/channel.h"
#include "guest/kcore_head.h"

static const struct kcore_segment *find(const struct kcore_head *head, uint64_t address,
					size_t size)
{
	for (size_t i = 0; i < head->segments.count; i++) {
		const struct kcore_segment *segment = &head->segments.items[i];
		uint64_t inside = address - segment->physical;

		if (segment->physical != UINT64_MAX && address >= segment->physical &&
		    inside < segment->size && size <= segment->size - inside)
			return segment;
	}
	return NULL;
}

int kcore_memory_read(void *context, uint64_t address, void *data, size_t size,
		      struct ptvm_error *error)
{
	const struct kcore_memory *memory = context;
	const struct kcore_segment *segment = find(memory->head, address, size);
	int r;

	if (!segment)
		return -PTVM_NOT_FOUND;
	r = channel_read(memory->channel, segment->offset + (address - segment->physical), data,
			 size, error);
	if (r < 0)
		return r;
	return (size_t)r == size ? 0 : -PTVM_NOT_FOUND;
}
