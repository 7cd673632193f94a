#include "decode/perf/perf_event.h"

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

/* Attrs grow by 8 bytes with each new field; no kernel is anywhere near the limit. */
enum { ATTR_SMALLEST = 64, ATTR_LARGEST = 4096 };

uint32_t perf_event_attr_size(struct bytes attr)
{
	uint64_t size;

	if (!bytes_read(attr, 4, 4, &size))
		return 0;
	if (!size)
		size = ATTR_SMALLEST;
	return size < ATTR_SMALLEST || size > ATTR_LARGEST || size > attr.size ? 0 : (uint32_t)size;
}

static void read_attr(struct bytes attr, struct perf_event *ret)
{
	ret->type = (uint32_t)bytes_number(attr, 0, 4);
	ret->config = bytes_number(attr, 8, 8);
	ret->sample_period = bytes_number(attr, 16, 8);
	ret->sample_type = bytes_number(attr, 24, 8);
	ret->read_format = bytes_number(attr, 32, 8);
	ret->flags = bytes_number(attr, 40, 8);
	ret->branch_sample_type = bytes_number(attr, 72, 8);
	ret->sample_regs_user = bytes_number(attr, 80, 8);
	ret->sample_regs_intr = bytes_number(attr, 96, 8);
}

/* All id lists together cannot be longer than the file, unless they lie on each other. */
static int copy_ids(struct perf_data *data, struct bytes ids, struct perf_event *event)
{
	size_t count = ids.size / 8;
	uint64_t *copy;

	if (!count)
		return 0;
	if (count > data->file.size / 8 - data->id_total)
		return -PTVM_BAD_INPUT;
	copy = arena_alloc(&data->arena, count * 8);
	if (!copy)
		return -PTVM_NO_MEMORY;
	memcpy(copy, ids.data, count * 8);
	event->ids = copy;
	event->id_count = count;
	data->id_total += count;
	return 0;
}

int perf_event_add(struct perf_data *data, struct bytes attr, struct bytes ids)
{
	struct perf_event event = { .name = "" };
	uint32_t size = perf_event_attr_size(attr);

	if (!size)
		return -PTVM_BAD_INPUT;
	event.attr = bytes_slice(attr, 0, size);
	read_attr(event.attr, &event);
	if (copy_ids(data, ids, &event) == -PTVM_NO_MEMORY || !vec_push(&data->events, event))
		return -PTVM_NO_MEMORY;
	return (int)size;
}

SORT_BY_TWO(compare_ids, struct perf_id, id, event)

static struct perf_id *find(const struct perf_data *data, uint64_t id)
{
	struct perf_id *ids = data->ids.items;
	const size_t count = data->ids.count;
	/* The kernel mostly numbers the events of one perf one after the other. */
	size_t at = count && id - ids[0].id < count ? (size_t)(id - ids[0].id) : 0;

	if (!at || ids[at].id != id || ids[at - 1].id == id)
		at = search_sorted(count, i, ids[i].id < id);
	return at < count && ids[at].id == id ? &ids[at] : NULL;
}

const struct perf_id *perf_event_find_id(const struct perf_data *data, uint64_t id)
{
	return find(data, id);
}

void perf_event_name(struct perf_data *data, uint64_t id, const char *name)
{
	const struct perf_id *found = find(data, id);

	if (found)
		data->events.items[found->event].name = name;
}

int perf_event_index_ids(struct perf_data *data)
{
	for (size_t i = 0; i < data->events.count; i++) {
		const struct perf_event *event = &data->events.items[i];

		for (size_t k = 0; k < event->id_count; k++)
			if (!vec_push(&data->ids, (struct perf_id){ .id = event->ids[k],
								    .event = (uint32_t)i,
								    .index = -1 }))
				return -PTVM_NO_MEMORY;
	}
	sort_vec(&data->ids, compare_ids);
	for (size_t i = 0; i < data->id_index.count; i++) {
		const struct perf_id_entry *entry = &data->id_index.items[i];
		struct perf_id *id = find(data, entry->id);

		if (!id)
			continue;
		id->machine_pid = entry->machine_pid;
		id->index = entry->idx >= 0 && entry->idx < 1 << 20 ? (int32_t)entry->idx : -1;
	}
	return 0;
}
