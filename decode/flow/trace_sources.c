#include "decode/flow/trace_sources.h"

#include "decode/base/error.h"
#include "decode/base/vec.h"

int trace_sources_add(struct trace_sources *sources, const struct aux_queue *queue,
		      const struct flow_code *where)
{
	struct trace_source source = { queue, *where };

	return vec_push(sources, source) ? 0 : -PTVM_NO_MEMORY;
}

uint64_t trace_sources_size(const struct trace_sources *sources)
{
	uint64_t size = 0;

	for (size_t i = 0; i < sources->count; i++)
		size += sources->items[i].queue->size;
	return size;
}

void trace_sources_free(struct trace_sources *sources)
{
	vec_free(sources);
}
